package membership_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/slipwayhq/slipway/internal/membership"
)

func TestClusterChanged(t *testing.T) {
	yes := true
	now := metav1.Now()
	cases := map[string]struct {
		change func(*clusterv1.Cluster)
		want   bool
	}{
		"spec":                 {func(c *clusterv1.Cluster) { c.Generation++ }, true},
		"deletion":             {func(c *clusterv1.Cluster) { c.DeletionTimestamp = &now }, true},
		"infrastructure ready": {func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = &yes }, true},
		"control plane ready":  {func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = &yes }, true},
		"other status":         {func(c *clusterv1.Cluster) { c.Status.Phase = "Provisioned" }, false},
	}
	for name, tc := range cases {
		before := &clusterv1.Cluster{}
		after := before.DeepCopy()
		tc.change(after)
		if got := membership.ClusterChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
