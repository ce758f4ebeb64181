package workload

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/fault"
)

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
