package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A change of the availability gates of a class reaches the Clusters that have none of their own.
func TestClassGatesReachClusters(t *testing.T) {
	gates := []clusterv1.ClusterAvailabilityGate{{ConditionType: "Mine"}}
	cluster := func(change func(*clusterv1.Cluster)) *clusterv1.Cluster {
		out := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
		out.Spec.Topology.ClassRef.Name = "class"
		change(out)
		return out
	}
	for name, tc := range map[string]struct {
		cluster *clusterv1.Cluster
		want    []string
	}{
		"gates of the class":   {cluster(func(*clusterv1.Cluster) {}), []string{"ns/class"}},
		"of another namespace": {cluster(func(c *clusterv1.Cluster) { c.Spec.Topology.ClassRef.Namespace = "other" }), []string{"other/class"}},
		"its own":              {cluster(func(c *clusterv1.Cluster) { c.Spec.AvailabilityGates = gates }), nil},
		"no class":             {cluster(func(c *clusterv1.Cluster) { c.Spec.Topology.ClassRef.Name = "" }), nil},
	} {
		if diff := cmp.Diff(tc.want, classOfGates(tc.cluster)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if !gatesChanged().Create(event.CreateEvent{Object: &clusterv1.ClusterClass{}}) {
		t.Error("a class that is restored after its Clusters enqueues none")
	}
	before, after := &clusterv1.ClusterClass{}, &clusterv1.ClusterClass{}
	after.Labels = map[string]string{"a": "b"}
	if gatesChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("an event without changed gates enqueues Clusters")
	}
	after.Spec.AvailabilityGates = gates
	if !gatesChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("changed gates enqueue no Clusters")
	}
}
