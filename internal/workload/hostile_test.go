package workload

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
)

// at is the kubeconfig of an API with another address in it.
func (a *api) at(server string) []byte {
	return []byte(strings.Replace(string(a.kubeconfig("one")), a.server.URL, server, 1))
}

// A closed port, an open one that speaks no TLS, and a server of another authority read the same: the Secret's writer
// chooses the address, and must not learn what is there.
func TestNoPortScan(t *testing.T) { // RC-01, RC-02
	a, other := newAPI(t), newAPI(t)
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer plain.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for what, server := range map[string]string{
		"closed": "https://" + closed.Addr().String(), "plain": "https://" + plain.Listener.Addr().String(),
		"other authority": other.server.URL,
	} {
		b := newBench(t, nil)
		b.provision()
		secret := a.at(server)
		if what == "other authority" {
			secret = []byte(strings.Replace(string(secret), "certificate-authority-data", "tls-server-name: none.invalid, certificate-authority-data", 1))
		}
		b.secret(secret)
		b.reconcile()
		want := "the API server at " + server + "/ does not respond as described in the kubeconfig Secret: " +
			"check that it runs, and server and certificate-authority-data in the Secret"
		if h := b.clusters.Health(key); h.Connected || h.Problem != want {
			t.Errorf("%s:\n got %s\nwant %s", what, h.Problem, want)
		}
	}
}

// An API that redirects does not choose whom the manager connects to.
func TestNoRedirect(t *testing.T) { // RC-01
	a := newAPI(t)
	reached := false
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer inner.Close()
	handler := a.server.Config.Handler
	redirecting := false
	a.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if redirecting {
			http.Redirect(w, r, inner.URL, http.StatusTemporaryRedirect)
			return
		}
		handler.ServeHTTP(w, r)
	})
	b := newBench(t, nil)
	b.connected(a)
	redirecting = true
	conn, err := b.clusters.connection(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.probe(t.Context(), t0, b.clusters.cfg.Timing.ProbeTimeout); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("the probe: %v", err)
	}
	var n = node("n", "")
	if err := conn.client.Get(t.Context(), client.ObjectKey{Name: "n"}, &n); err == nil {
		t.Error("a call succeeded")
	}
	if reached {
		t.Error("the redirect was followed")
	}
}

// The rules of the operator hold for what a Secret says.
func TestPolicyOfTheOperator(t *testing.T) { // RC-01
	a := newAPI(t)
	b := newBench(t, func(c *Config) {
		c.Policy = policy.Default()
		c.Policy.Workloads.Ranges = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	})
	b.provision()
	b.secret(a.kubeconfig("one"))
	b.reconcile()
	if h := b.clusters.Health(key); h.Connected || !strings.Contains(h.Problem, "workloads.ranges") || a.probes != 0 {
		t.Errorf("%d probes, %+v", a.probes, h)
	}
	if _, err := ParseKubeconfig(a.kubeconfig("one"), b.clusters.cfg.Policy); err == nil {
		t.Error("the address is within the ranges: the test shows nothing")
	}
}

// endless answers with the same piece until the client hangs up, and counts what it sent.
type endless struct {
	piece string
	sent  atomic.Int64
}

func (e *endless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for r.Context().Err() == nil {
		n, err := io.WriteString(w, e.piece)
		if e.sent.Add(int64(n)); err != nil {
			return
		}
	}
}

// An API that answers without end costs a bounded amount of memory, and says which limit it met.
func TestHostileAnswers(t *testing.T) { // RC-04, RC-06
	for name, piece := range map[string]string{
		"a long text": strings.Repeat("x", 4096), "many items": strings.Repeat(`{},`, 1000),
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			b := newBench(t, nil)
			b.connected(a)
			conn, err := b.clusters.connection(key)
			if err != nil {
				t.Fatal(err)
			}
			good := a.server.Config.Handler
			hostile := &endless{piece: piece}
			a.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/nodes" {
					good.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","items":[`)
				hostile.ServeHTTP(w, r)
			})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err = conn.client.List(t.Context(), &corev1.NodeList{})
			runtime.ReadMemStats(&after)
			if f := fault.As(err); f == nil || f.Reason != reasonTooLarge && f.Reason != reasonMemory || f.Kind != fault.Unreachable {
				t.Errorf("got %v", err)
			}
			// Reading doubles its buffer as it grows, and what it had before is garbage.
			if took, most := after.TotalAlloc-before.TotalAlloc, uint64(8*defaultLimits().Bytes); took > most {
				t.Errorf("%d bytes were allocated, at most %d", took, most)
			}
			if name == "many items" && hostile.sent.Load() > 8<<20 {
				t.Errorf("%d bytes of items were read", hostile.sent.Load())
			}
		})
	}
}
