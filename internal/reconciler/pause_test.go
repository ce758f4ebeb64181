package reconciler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a paused object waits for is its plan: `slipway explain` has no other.
func TestPauseIsAWait(t *testing.T) { // PA-01
	labelled := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: clusterv1.MachineSpec{ClusterName: "c"}}
	for name, tc := range map[string]struct {
		p    pause
		o    client.Object
		kind string
		want Wait
	}{
		"by its Cluster": {pause{byCluster: true}, labelled, "Machine", Wait{Reason: "Paused", Message: "Cluster c is paused: set its spec.paused to false to go on",
			On: []Subject{{Kind: "Cluster", Name: "c"}}, Field: "spec.paused", Until: untilChange}},
		"itself": {pause{byAnnotation: true}, labelled, "Machine", Wait{Reason: "Paused", Message: "Machine m is paused: remove its annotation cluster.x-k8s.io/paused to go on",
			On: []Subject{{Kind: "Machine", Name: "m"}}, Field: "metadata.annotations[cluster.x-k8s.io/paused]", Until: untilChange}},
		"a Cluster": {pause{byCluster: true}, labelled, "Cluster", Wait{Reason: "Paused", Message: "Cluster m is paused: set its spec.paused to false to go on",
			On: []Subject{{Kind: "Cluster", Name: "m"}}, Field: "spec.paused", Until: untilChange}},
	} {
		if diff := cmp.Diff([]Wait{tc.want}, tc.p.plan(tc.kind, tc.o).Waits); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
