package portforward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/slipwayhq/slipway/internal/fault"
)

// api plays an API server whose Pods send back what they get.
func api(t *testing.T, failing bool) (*httptest.Server, chan string) {
	t.Helper()
	asked := make(chan string, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization")
		if _, err := httpstream.Handshake(r, w, []string{protocol}); err != nil {
			t.Error(err)
			return
		}
		streams := make(chan httpstream.Stream, 2)
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
			streams <- s
			return nil
		})
		if conn == nil {
			return
		}
		defer func() { _ = conn.Close() }()
		serve(streams, failing)
		<-conn.CloseChan()
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, asked
}

func serve(streams <-chan httpstream.Stream, failing bool) {
	problems, data := <-streams, <-streams
	if problems.Headers().Get(corev1.StreamType) != corev1.StreamTypeError {
		problems, data = data, problems
	}
	if failing {
		_, _ = io.WriteString(problems, "connection refused")
		_ = problems.Close()
		return
	}
	go func() {
		_, _ = io.WriteString(data, data.Headers().Get(corev1.PortHeader)+" ")
		_, _ = io.Copy(data, data)
	}()
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
	s, asked := api(t, false)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	conn, err := Dial(ctx, transport(t, s), s.URL, pod)
	cancel() // the connection outlives it
	if err != nil {
		t.Fatal(err)
	}
	if got, want := <-asked, "POST /api/v1/namespaces/kube-system/pods/etcd-n1/portforward Bearer secret"; got != want {
		t.Errorf("asked %q", got)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len("2379 hello"))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "2379 hello" {
		t.Errorf("got %q, %v", got, err)
	}
	if conn.RemoteAddr().String() != "kube-system/etcd-n1:2379" {
		t.Errorf("address %s", conn.RemoteAddr())
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(got); err == nil {
		t.Error("read from a closed connection")
	}
}

// What the kubelet says went wrong ends the connection.
func TestRefused(t *testing.T) {
	s, _ := api(t, true)
	conn, err := Dial(t.Context(), transport(t, s), s.URL, pod)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, io.EOF) {
		t.Logf("ended with %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"forbidden": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "forbidden", http.StatusForbidden) },
		"hanging":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
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
