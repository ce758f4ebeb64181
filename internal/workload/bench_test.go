package workload

import (
	"context"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// BenchmarkIdleProbe is one probe of a cluster in which nothing happens (RC-02).
// The management cluster is controller-runtime's fake, whose Get costs more than a
// cache's.
func BenchmarkIdleProbe(bm *testing.B) {
	a := newAPI(bm)
	b := newBench(bm, nil)
	b.connected(a)
	now := t0
	bm.ReportAllocs()
	for bm.Loop() {
		now = now.Add(10 * time.Second)
		b.clock.SetTime(now)
		if _, err := b.clusters.Reconcile(context.Background(), ctrl.Request{NamespacedName: key}); err != nil {
			bm.Fatal(err)
		}
	}
	if h := b.clusters.Health(key); !h.IsHealthy() {
		bm.Errorf("%+v", h)
	}
}
