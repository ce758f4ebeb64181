package portforward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"k8s.io/client-go/rest"
	kubelet "k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/slipwayhq/slipway/internal/fault"
)

// api plays an API server whose Pods send back what they get, with what kubelets serve forwarded ports with. It refuses WebSockets
// where it is told to, as old proxies do.
func api(t *testing.T, webSockets, failing bool) (*httptest.Server, chan string) {
	t.Helper()
	asked := make(chan string, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Authorization")
		if wsstream.IsWebSocketRequest(r) && !webSockets {
			http.Error(w, "no WebSockets here", http.StatusForbidden)
			return
		}
		options, err := kubelet.BuildV4Options([]int32{2379}) // API servers make these of the parameter ports
		if err != nil {
			t.Error(err)
			return
		}
		kubelet.ServePortForward(w, r, echo{failing: failing}, "etcd-n1", "1", options, time.Minute, time.Minute, kubelet.SupportedProtocols)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, asked
}

// echo is a Pod that says its port, then sends back what it gets.
type echo struct{ failing bool }

// PortForward implements portforward.PortForwarder.
func (e echo) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	if e.failing {
		return errors.New("connection refused")
	}
	_, _ = fmt.Fprintf(stream, "%d ", port)
	_, err := io.Copy(stream, stream)
	return err
}

func transport(t *testing.T, s *httptest.Server) http.RoundTripper {
	t.Helper()
	sockets := s.Client().Transport.(*http.Transport).Clone()
	out, err := Transport(&rest.Config{BearerToken: "secret"}, sockets)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var pod = Target{Namespace: "kube-system", Pod: "etcd-n1", Port: 2379}

// KC-34: with the sockets and credentials of the connection, to the port of the Pod.
func TestDial(t *testing.T) {
	const at = "/api/v1/namespaces/kube-system/pods/etcd-n1/portforward"
	for name, tc := range map[string]struct {
		webSockets bool
		asked      []string
	}{
		"WebSocket": {true, []string{"GET " + at + "?ports=2379 Bearer secret"}},
		"SPDY":      {false, []string{"GET " + at + "?ports=2379 Bearer secret", "POST " + at + " Bearer secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, asked := api(t, tc.webSockets, false)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			conn, err := Dial(ctx, transport(t, s), s.URL, pod)
			cancel() // the connection outlives it
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.asked {
				if got := <-asked; got != want {
					t.Errorf("asked %q, want %q", got, want)
				}
			}
			long := bytes.Repeat([]byte("hello "), 100_000)
			written := make(chan error, 1)
			go func() {
				_, err := conn.Write(long)
				written <- err
			}()
			want := append([]byte("2379 "), long...)
			got := make([]byte, len(want))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %d bytes that differ, %v", len(got), err)
			}
			if err := <-written; err != nil {
				t.Error(err)
			}
			if conn.RemoteAddr().String() != "kube-system/etcd-n1:2379" {
				t.Errorf("address %s", conn.RemoteAddr())
			}
			reads := make(chan error, 1)
			go func() {
				_, err := conn.Read(got)
				reads <- err
			}()
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if err := <-reads; err == nil {
				t.Error("read from a closed connection")
			}
			if _, err := conn.Write(got); err == nil {
				t.Error("wrote to a closed connection")
			}
		})
	}
}

// What the kubelet says went wrong ends the connection.
func TestRefused(t *testing.T) {
	for _, webSockets := range []bool{true, false} {
		s, _ := api(t, webSockets, true)
		var data []byte
		conn, err := Dial(t.Context(), transport(t, s), s.URL, pod)
		if err == nil { // SPDY may end before it is open
			data, err = io.ReadAll(conn)
			_ = conn.Close()
		}
		if len(data) > 0 {
			t.Errorf("WebSocket %t: read %q", webSockets, data)
		}
		if webSockets && (fault.KindOf(err) != fault.Unreachable || !strings.Contains(err.Error(), "connection refused")) {
			t.Errorf("what went wrong is not said: %v", err)
		}
	}
}

// An API server may send anything.
func TestForeignMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		messages []string
		want     string
		fails    bool
	}{
		"port apart":         {[]string{"\x00\x4b\x09", "\x00a", "\x00bc"}, "abc", false},
		"port in two":        {[]string{"\x00\x4b", "\x00\x09a"}, "a", false},
		"with the first":     {[]string{"\x00\x4b\x09a"}, "a", false},
		"empty ones":         {[]string{"\x00", "\x01", "\x00\x4b\x09", "\x00", "\x00a"}, "a", false},
		"port of the second": {[]string{"\x01\x4b\x09", "\x00\x4b\x09a"}, "a", false},
		"no channel":         {[]string{""}, "", true},
		"another channel":    {[]string{"\x02x"}, "", true},
		"too much":           {[]string{"\x00\x4b\x09" + strings.Repeat("a", maxMessage)}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{channels}})
				if err != nil {
					t.Error(err)
					return
				}
				for _, m := range tc.messages {
					if err := ws.Write(r.Context(), websocket.MessageBinary, []byte(m)); err != nil {
						return // the other side has had enough
					}
				}
				_ = ws.Close(websocket.StatusNormalClosure, "")
			}))
			defer s.Close()
			conn, err := Dial(t.Context(), transport(t, s), s.URL, pod)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			got, err := io.ReadAll(conn)
			if (err != nil) != tc.fails || !tc.fails && string(got) != tc.want {
				t.Errorf("read %q, %v; want %q", got[:min(len(got), 20)], err, tc.want)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"forbidden": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "forbidden", http.StatusForbidden) },
		"redirected": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
		},
		"another protocol": func(w http.ResponseWriter, r *http.Request) {
			if ws, err := websocket.Accept(w, r, nil); err == nil {
				_ = ws.CloseNow()
			}
		},
		"hanging": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		s := httptest.NewTLSServer(handle)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := Dial(ctx, transport(t, s), s.URL, pod)
		cancel()
		s.Close()
		if fault.KindOf(err) != fault.Unreachable {
			t.Errorf("%s: %v", name, err)
		}
	}
}
