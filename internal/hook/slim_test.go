package hook

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// RT-27
func TestSlim(t *testing.T) {
	c := cluster("ns")
	c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	c.Labels = map[string]string{"a": "b"}
	c.Annotations = map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": "{}", "cluster.x-k8s.io/conversion-data": "{}", "c": "d",
	}
	c.Status.Phase = "Provisioned"
	c.Spec.Paused = ptr.To(true)
	data, err := json.Marshal(ClusterForRequest(c))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"name":"c","namespace":"ns","uid":"uid-c","labels":{"a":"b"},"annotations":{"c":"d"}},"spec":{"paused":true}}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	if len(c.ManagedFields) != 1 || c.Status.Phase == "" || len(c.Annotations) != 3 {
		t.Error("the Cluster itself was changed")
	}
}

// RT-14: an answer is for a question about a Cluster; the record of what was asked is no part of it.
func TestDigest(t *testing.T) {
	same := map[string]func(*clusterv1.Cluster){
		"resource version": func(c *clusterv1.Cluster) { c.ResourceVersion, c.Generation = "7", 7 },
		"status":           func(c *clusterv1.Cluster) { c.Status.Phase = "Provisioned" },
		"record": func(c *clusterv1.Cluster) {
			c.Annotations = map[string]string{"runtime.cluster.x-k8s.io/pending-hooks": "x", "topology.internal.cluster.x-k8s.io/upgrade-step": "v1"}
		},
	}
	other := map[string]func(*clusterv1.Cluster){
		"label":      func(c *clusterv1.Cluster) { c.Labels = map[string]string{"a": "b"} },
		"annotation": func(c *clusterv1.Cluster) { c.Annotations = map[string]string{"a": "b"} },
		"spec":       func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) },
		"uid":        func(c *clusterv1.Cluster) { c.UID = "another" },
	}
	want := digest(cluster("ns"), "v1")
	for _, expected := range []bool{true, false} {
		for name, change := range map[bool]map[string]func(*clusterv1.Cluster){true: same, false: other}[expected] {
			c := cluster("ns")
			change(c)
			if got := digest(c, "v1"); (got == want) != expected {
				t.Errorf("%s: the digest is the same: %v", name, got == want)
			}
		}
	}
	if digest(cluster("ns"), "v2") == want {
		t.Error("another version is the same question")
	}
}
