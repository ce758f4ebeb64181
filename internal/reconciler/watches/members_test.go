package watches

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An object is found by every Cluster that decides whether it is paused.
func TestClusterNames(t *testing.T) { // PA-01
	labelled := metav1.ObjectMeta{Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}
	spec := clusterv1.MachineSetSpec{ClusterName: "c"}
	for reason, tc := range map[string]struct {
		o    client.Object
		want []string
	}{
		"new, and paused before it was labelled": {&clusterv1.MachineSet{Spec: spec}, []string{"c"}},
		"as usual":                               {&clusterv1.MachineSet{ObjectMeta: labelled, Spec: spec}, []string{"c"}},
		"of a kind without that field":           {&clusterv1.ClusterClass{ObjectMeta: labelled}, []string{"c"}},
		"of no Cluster":                          {&clusterv1.ClusterClass{}, nil},
		"a label of another Cluster":             {&clusterv1.MachineSet{ObjectMeta: labelled, Spec: clusterv1.MachineSetSpec{ClusterName: "d"}}, []string{"d", "c"}},
	} {
		if diff := cmp.Diff(tc.want, clusterNames(tc.o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}
