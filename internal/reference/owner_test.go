package reference

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestOwn(t *testing.T) { // CL-04, MA-06, OR-01
	yes, no := true, false
	other := metav1.OwnerReference{Kind: "Other", Name: "o", UID: "o"}
	creator := metav1.OwnerReference{Kind: "FooSet", Name: "s", UID: "s", Controller: &yes}
	cases := map[string]struct {
		reason string
		shared bool
		have   []metav1.OwnerReference
		want   []metav1.OwnerReference
	}{
		"restored": {"an owner from before a restore is replaced, others stay", true,
			[]metav1.OwnerReference{other, {APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Foo", Name: "f", UID: "restored"}},
			[]metav1.OwnerReference{other, {APIVersion: clusterv1.GroupVersion.String(), Kind: "Foo", Name: "f", UID: "foo", Controller: &no}}},
		"shared": {"who controls it stays", true, []metav1.OwnerReference{creator},
			[]metav1.OwnerReference{creator, {APIVersion: clusterv1.GroupVersion.String(), Kind: "Foo", Name: "f", UID: "foo", Controller: &no}}},
		"taken over": {"there can be one controller only", false, []metav1.OwnerReference{other, creator},
			[]metav1.OwnerReference{other, {APIVersion: clusterv1.GroupVersion.String(), Kind: "Foo", Name: "f", UID: "foo", Controller: &yes, BlockOwnerDeletion: &yes}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{}}
			o.SetOwnerReferences(tc.have)
			o.SetLabels(map[string]string{"a": "b"})
			l := Link{
				Role:    Role{Owner: clusterv1.GroupVersion.WithKind("Foo"), ReplacesController: true},
				From:    &metav1.ObjectMeta{Name: "f", UID: "foo"},
				Cluster: "c", View: contract.InfraCluster(contract.Object{Unstructured: o}), Shared: tc.shared,
			}
			if l.isOwned() {
				t.Error("it is not owned yet")
			}
			l.own(o)
			if diff := cmp.Diff(tc.want, o.GetOwnerReferences()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(map[string]string{"a": "b", clusterv1.ClusterNameLabel: "c"}, o.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if !l.isOwned() {
				t.Error("what own makes is owned")
			}
			l.Shared = !l.Shared
			if l.isOwned() {
				t.Error("whether it is controlled matters")
			}
		})
	}
}
