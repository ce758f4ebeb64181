package reconciler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
)

// What a paused object waits for is its plan: `slipway explain` has no other.
func TestPauseIsAWait(t *testing.T) { // PA-01
	labelled := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: clusterv1.MachineSpec{ClusterName: "c"}}
	for name, tc := range map[string]struct {
		p    reporting.Pause
		o    client.Object
		kind string
		want Wait
	}{
		"by its Cluster": {reporting.Pause{ByCluster: true}, labelled, "Machine", Wait{Reason: "Paused", Message: "Cluster c is paused: set its spec.paused to false to continue",
			On: []Subject{{Kind: "Cluster", Name: "c"}}, Field: "spec.paused", Until: untilChange}},
		"itself": {reporting.Pause{ByAnnotation: true}, labelled, "Machine", Wait{Reason: "Paused", Message: "Machine m is paused: remove its annotation cluster.x-k8s.io/paused to continue",
			On: []Subject{{Kind: "Machine", Name: "m"}}, Field: "metadata.annotations[cluster.x-k8s.io/paused]", Until: untilChange}},
		"a Cluster": {reporting.Pause{ByCluster: true}, labelled, "Cluster", Wait{Reason: "Paused", Message: "Cluster m is paused: set its spec.paused to false to continue",
			On: []Subject{{Kind: "Cluster", Name: "m"}}, Field: "spec.paused", Until: untilChange}},
	} {
		if diff := cmp.Diff([]Wait{tc.want}, pausePlan(tc.p, tc.kind, tc.o).Waits); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
