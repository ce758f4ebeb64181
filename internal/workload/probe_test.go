package workload

import (
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"user u cannot get path /api"}`

// hostileKinds are servers that are no API server, or none that can be used. Only what an API server alone returns is a
// success. Where a handler is nil, the good one is used.
func hostileKinds() map[string]struct {
	version, rest http.HandlerFunc
	want          string
} {
	text := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	html := text(200, "text/html", "<html>Sign in</html>")
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	const silent, none = "does not respond as described in the kubeconfig Secret", "is not a Kubernetes API server"
	type kind = struct {
		version, rest http.HandlerFunc
		want          string
	}
	return map[string]kind{
		"hangs":                     {hang, hang, silent},
		"500":                       {text(500, "text/plain", "x"), nil, "returns HTTP status 500"},
		"HTML":                      {html, html, none},
		"404":                       {text(404, "text/plain", "no such page"), nil, none},
		"JSON":                      {text(200, "application/json", `[1,2,{"kind":42}]`), nil, none},
		"{}":                        {text(200, "application/json", `{}`), nil, none},
		"HTML that says it is JSON": {text(200, "application/json", "<html>"), nil, none},
		"JSON that says it is HTML": {text(200, "text/html", `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`), nil, none},
		"429":                       {text(429, "text/plain", "later"), nil, "has too many (HTTP status 429)"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://192.0.2.1/", http.StatusFound)
		}, nil, "redirects to another address"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			(&endless{piece: strings.Repeat(" ", 4096)}).ServeHTTP(w, r)
		}, nil, none},
		"a byte now and then": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, nil, silent},
		"gzip bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			repeated(packed, strings.Repeat(" ", 1000), 20_000)
			_ = packed.Close()
		}, nil, none},
		"reset": {func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
		}, nil, silent},
		"version, all else hangs":   {nil, hang, silent},
		"version, all else is HTML": {nil, html, none},
		"version, all else is 429":  {nil, text(429, "application/json", `{}`), "429"},
		"forbidden by a proxy":      {text(403, "text/html", "<html>Forbidden</html>"), nil, none},
		"forbidden by an API server": {nil, text(403, "application/json", forbidden), "does not let the user of the kubeconfig Secret get /api: " +
			"give that user ClusterRole system:discovery there, or renew the Secret"},
	}
}

func TestOnlyAnAPIServerIsHealthy(t *testing.T) { // RC-02
	for name, tc := range hostileKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t)
			b := newBench(t, nil)
			b.connected(a)
			good := a.server.Config.Handler
			a.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch handler := tc.rest; {
				case r.URL.Path == "/version" && tc.version != nil:
					tc.version(w, r)
				case r.URL.Path != "/version" && handler != nil:
					handler(w, r)
				default:
					good.ServeHTTP(w, r)
				}
			})
			b.clusters.cfg.Timing.ProbeTimeout = 300 * time.Millisecond
			if !strings.Contains(tc.want, "does not respond as") {
				b.clusters.cfg.Timing.ProbeTimeout = 20 * time.Second // a busy machine
			}
			b.clock.SetTime(t0.Add(10 * time.Second))
			b.reconcile()
			if h := b.clusters.Health(key); h.IsHealthy() || h.ConsecutiveFailures != 1 || !strings.Contains(h.Problem, tc.want) {
				t.Errorf("%+v", h)
			}
		})
	}
}

// For an address that Slipway chose there is nothing to hide: slow, absent and wrong are told apart.
func TestOwnAddressesAreDescribed(t *testing.T) { // RC-02
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for name, tc := range map[string]struct {
		server string
		change string
		want   string
	}{
		"nothing listens": {"https://" + closed.Addr().String(), "", "nothing listens at the address of the API server, %s: the control plane is starting, or does not run"},
		"slow":            {"", "", "the API server at %s did not respond within 100ms: it is slow or overloaded"},
		"other authority": {"", "tls-server-name: none.invalid, ", "the certificate of the API server at %s is not the one that the kubeconfig Secret describes: check certificate-authority-data in the Secret"},
	} {
		a := newAPI(t)
		b := newBench(t, func(c *Config) {
			c.IsManagedAddress = func(_ context.Context, cluster *clusterv1.Cluster, address string) bool {
				return cluster.Name == key.Name && strings.HasPrefix(address, "127.0.0.1:")
			}
			if name == "slow" {
				c.Timing.ProbeTimeout = 100 * time.Millisecond
			}
		})
		server := tc.server
		if server == "" {
			server = a.server.URL
		}
		if name == "slow" {
			a.server.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}
		b.provision()
		b.secret([]byte(strings.Replace(string(a.at(server)), "certificate-authority-data", tc.change+"certificate-authority-data", 1)))
		b.reconcile()
		if h, want := b.clusters.Health(key), fmt.Sprintf(tc.want, server+"/"); h.Problem != want {
			t.Errorf("%s:\n got %s\nwant %s", name, h.Problem, want)
		}
	}
}

// A client certificate that has expired is named with its date.
func TestExpiredClientCertificate(t *testing.T) { // RC-03
	a := newAPI(t)
	b := newBench(t, nil)
	b.provision()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admin"}, NotBefore: t0.AddDate(-3, 0, 0), NotAfter: t0.AddDate(-2, 0, 0)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, data []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	b.secret([]byte(strings.Replace(string(a.kubeconfig("one")), `{token: "one"}`, fmt.Sprintf(
		"{client-certificate-data: %s, client-key-data: %s}", encode("CERTIFICATE", raw), encode("EC PRIVATE KEY", der)), 1)))
	b.reconcile()
	want := "the client certificate in Secret c1-kubeconfig expired on 2024-01-02: renew the Secret"
	if h := b.clusters.Health(key); h.Connected || h.Problem != want {
		t.Errorf("got %s\nwant %s", h.Problem, want)
	}
}

// A cache goes on to return the Nodes that it has. When the API server has not served Nodes for long, they are not read any
// more, although it answers probes; as long as a watch is open they are current.
func TestNodesThatAreNotServed(t *testing.T) { // RC-02, RC-07
	a := newAPI(t)
	a.add(node("n1", "p://1"))
	b := newBench(t, nil)
	b.connected(a)
	read := func() error {
		nodes, err := b.clusters.Nodes(t.Context(), key, "p://1")
		if err == nil && len(nodes) != 1 {
			t.Errorf("%d Nodes", len(nodes))
		}
		return err
	}
	eventually(t, "the Nodes are read", func() bool { return read() == nil })
	eventually(t, "the Nodes are watched", func() bool { return a.watching() == 1 })
	conn, err := b.clusters.connection(key)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cache is known to be filled", conn.filled.Load)
	b.clock.SetTime(t0.Add(20 * time.Minute))
	if h := b.clusters.Health(key); read() != nil || !h.NodesRead.Equal(t0.Add(20*time.Minute)) {
		t.Errorf("a watch is open: %v, %+v", read(), h)
	}

	good := a.server.Config.Handler
	a.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/nodes" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>Sign in</html>")
			return
		}
		good.ServeHTTP(w, r)
	})
	a.server.CloseClientConnections()
	now := t0.Add(20 * time.Minute)
	eventually(t, "the watch has ended", func() bool {
		now = now.Add(time.Second)
		b.clock.SetTime(now)
		return b.clusters.Health(key).NodesRead.Before(now)
	})
	last := b.clusters.Health(key).NodesRead
	b.clock.SetTime(last.Add(5 * time.Minute))
	if err := read(); err != nil {
		t.Errorf("within the grace: %v", err)
	}
	b.clock.SetTime(last.Add(5*time.Minute + time.Second))
	b.reconcile() // a probe, which succeeds
	h := b.clusters.Health(key)
	if f := fault.As(read()); f == nil || f.Kind != fault.Unreachable || f.Reason != "NodesUnreadable" || !h.IsHealthy() || h.NodesGraceLeft(b.clock.Now(), 5*time.Minute) != 0 {
		t.Errorf("%v, %+v", f, h)
	}
	a.server.Config.Handler = good
	eventually(t, "the Nodes are read again", func() bool { return read() == nil })
}
