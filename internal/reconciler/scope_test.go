package reconciler_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// An object that is not the manager's is not touched, whatever woke the controller.
func TestReconcileLeavesOthersAlone(t *testing.T) { // PA-02, CT-09
	for name, tc := range map[string]struct {
		label, cluster string
		want           bool
	}{"mine": {"x", "x", true}, "without": {"", "x", false}, "Cluster without": {"x", "", false}, "Cluster of another": {"x", "y", false}} {
		m := machine(func(m *clusterv1.Machine) {
			m.Finalizers = nil
			if tc.label != "" {
				m.Labels[clusterv1.WatchLabel] = tc.label
			}
		})
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
		if tc.cluster != "" {
			cluster.Labels = map[string]string{clusterv1.WatchLabel: tc.cluster}
		}
		h := newHarness(t, m, cluster)
		h.r.Scope = watches.Scope{WatchFilter: "x", Cached: h.client, Live: h.client}
		if _, err := h.reconcile(t); err != nil {
			t.Fatal(err)
		}
		if got := len(h.get(t).Finalizers) > 0; got != tc.want {
			t.Errorf("%s: touched %t", name, got)
		}
	}
}
