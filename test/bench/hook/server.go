package hook

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/bench/harness"
)

// serveName is the subcommand of the server process.
const serveName = "serve-extensions"

// Paths of the server process. All respond with stats.
const (
	statsPath = "/stats"
	hangPath  = "/hang" // the last extension hangs
	openPath  = "/open" // all extensions respond
)

// ServeCommand returns the hidden subcommand that serves the extensions until standard input is closed.
func ServeCommand() *cobra.Command {
	return &cobra.Command{Use: serveName, Hidden: true, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if err := serve(cmd.OutOrStdout()); err != nil {
			return fmt.Errorf("serve extensions: %w", err)
		}
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}}
}

// serving is printed when the extensions are ready.
type serving struct {
	URLs []string
	CA   string
}

// stats are the calls since the last stats.
type stats struct {
	Calls       int
	P50         time.Duration // of the extension's own time
	Connections int           // since the start
}

// server implements all extensions. They respond immediately.
type server struct {
	gate *gate

	mu          sync.Mutex
	times       []time.Duration
	connections int
}

func serve(out io.Writer) error {
	s, ready := &server{}, serving{}
	for range extensions {
		h := httptest.NewUnstartedServer(s)
		s.gate = &gate{Listener: h.Listener}
		h.Listener, h.Config.ConnState = s.gate, s.countConnection
		h.StartTLS()
		ready.URLs = append(ready.URLs, h.URL)
		ready.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})) // the same for all
	}
	return json.NewEncoder(out).Encode(ready)
}

func (s *server) countConnection(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		s.mu.Lock()
		s.connections++
		s.mu.Unlock()
	}
}

// ServeHTTP implements http.Handler and records its own time for calls of the hook.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	w.Header().Set("Content-Type", "application/json")
	version := hooks.Discovery.APIVersion()
	switch path := r.URL.Path; {
	case path == statsPath, path == hangPath, path == openPath:
		if path != statsPath {
			s.gate.set(path == hangPath)
		}
		_ = json.NewEncoder(w).Encode(s.takeStats())
	case path == hooks.Discovery.Path(""):
		_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"DiscoveryResponse","status":"Success","handlers":[{"name":"check","timeoutSeconds":2,`+
			`"requestHook":{"apiVersion":%q,"hook":"BeforeClusterCreate"}}]}`, version, version)
	case strings.HasSuffix(path, "/check"):
		request := &hooksv1.BeforeClusterCreateRequest{}
		if err := json.NewDecoder(r.Body).Decode(request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"BeforeClusterCreateResponse","status":"Success","retryAfterSeconds":0}`, request.APIVersion)
		s.mu.Lock()
		s.times = append(s.times, time.Since(start))
		s.mu.Unlock()
	default:
		http.NotFound(w, r)
	}
}

func (s *server) takeStats() stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := stats{Calls: len(s.times), P50: harness.Quantile(s.times, 0.5), Connections: s.connections}
	s.times = nil
	return out
}

// gate is a listener. While it is shut, clients can connect but receive no response, not even a TLS handshake.
type gate struct {
	net.Listener

	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g.mu.Lock()
		g.conns = append(g.conns, conn)
		shut := g.shut
		g.mu.Unlock()
		if !shut {
			return conn, nil
		}
	}
}

// set opens or shuts the gate and closes all connections.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for _, conn := range g.conns {
		_ = conn.Close()
	}
	g.conns = nil
}
