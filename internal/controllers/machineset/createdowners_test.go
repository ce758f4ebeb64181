package machineset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// A MachineSet that this process has created needs no workload cluster to say whether it had Machines. One that may have come back from a
// backup does: before its control plane is initialized again, no Machine of it is created.
func TestBeginningSet(t *testing.T) { // OR-01, MS-12
	now := time.Unix(1e9, 0)
	begun := &ownership.CreatedOwners{}
	begun.Add("created", now)
	c := &controller{begun: begun, now: func() time.Time { return now }}
	for name, tc := range map[string]struct {
		set          *clusterv1.MachineSet
		seen, begins bool
	}{
		"created here": {&clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{UID: "created"}}, true, false},
		"restored":     {&clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{UID: "restored"}}, false, true},
	} {
		s := snapshot{Set: tc.set, Cluster: &clusterv1.Cluster{}}
		if err := c.readWorkload(t.Context(), &s, nil); err != nil {
			t.Fatal(err)
		}
		if s.Workload.NodesRead != tc.seen || s.AwaitsWorkloadCluster != tc.begins {
			t.Errorf("%s: seen %t, begins %t", name, s.Workload.NodesRead, s.AwaitsWorkloadCluster)
		}
	}
}
