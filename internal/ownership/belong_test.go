package ownership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestJoin(t *testing.T) { // OR-01
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "new"}}
	other := metav1.OwnerReference{APIVersion: "other.io/v1", Kind: "Cluster", Name: "c", UID: "other"}
	before := map[string]string{"a": "b"}
	o := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: before, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Cluster", Name: "c", UID: "old"}, other,
	}}}
	if Joined(o, cluster) {
		t.Error("owned by a Cluster that does not exist any more, and without the label")
	}
	Join(o, cluster)
	want := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"a": "b", clusterv1.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{other, {
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "new",
		}},
	}}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("a Cluster of another group is another Cluster (-want +got):\n%s", diff)
	}
	if len(before) != 1 {
		t.Errorf("the map of the cache was changed: %v", before)
	}
	if !Joined(o, cluster) {
		t.Error("it belongs to the Cluster now")
	}
	Join(o, cluster)
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("the second time changes nothing (-want +got):\n%s", diff)
	}
}
