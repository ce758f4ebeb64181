package machinepool

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/workload"
)

// recorder keeps what was asked to be watched.
type recorder struct {
	fakeWorkloads
	request *workload.WatchRequest
}

func (r recorder) Watch(_ context.Context, _ client.ObjectKey, w workload.WatchRequest) error {
	*r.request = w
	return nil
}

func TestNodesWakeTheirPool(t *testing.T) { // MP-06
	s := settled()
	var asked workload.WatchRequest
	c := &controller{
		client:    indexed(&clusterv1.MachinePool{}).WithObjects(s.Pool).Build(),
		workloads: recorder{request: &asked},
	}
	if err := c.watchNodes(context.Background(), client.ObjectKeyFromObject(s.Cluster)); err != nil {
		t.Fatal(err)
	}
	mine, other := node("n0", "x://0"), node("n9", "x://9")
	if got := asked.Map(context.Background(), &mine); len(got) != 1 || got[0].Name != "p" {
		t.Errorf("a Node of the pool wakes it: %v", got)
	}
	if got := asked.Map(context.Background(), &other); len(got) != 0 {
		t.Errorf("another Node does not: %v", got)
	}
	beat := mine.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime.Time = now
	if asked.Changed(&mine, beat) {
		t.Error("a heartbeat is no news")
	}
	down := mine.DeepCopy()
	down.Status.Conditions[0].Status = corev1.ConditionFalse
	if !asked.Changed(&mine, down) {
		t.Error("a Node that is not ready any more is")
	}
}

func TestMembersWakeTheirPool(t *testing.T) { // MP-07
	s := settled()
	c := &controller{client: indexed(&clusterv1.MachinePool{}).WithObjects(s.Pool).Build()}
	for name, tc := range map[string]struct {
		labels string
		want   []string
	}{
		"of the pool":     {"{cluster.x-k8s.io/cluster-name: c, cluster.x-k8s.io/pool-name: p}", []string{"p"}},
		"of another pool": {"{cluster.x-k8s.io/cluster-name: c, cluster.x-k8s.io/pool-name: q}", nil},
		"of none":         {"{}", nil},
	} {
		var got []string
		for _, r := range c.poolOfMember(context.Background(), foreign("apiVersion: i/v1\nkind: FooMachine\nmetadata: {name: m, namespace: ns, labels: "+tc.labels+"}")) {
			got = append(got, r.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
