package clone

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func templateRef(name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooTemplate", Name: name}
}

func owner(name string, change func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	set.Spec.Template.Spec.InfrastructureRef, set.Spec.Template.Spec.Bootstrap.ConfigRef = templateRef(name), templateRef("shared")
	if change != nil {
		change(set)
	}
	return set
}

// Each owner is left out of its own answer; what is being deleted, or is elsewhere, uses nothing.
func TestUsage(t *testing.T) {
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md", UID: "md"}}
	md.Spec.Template.Spec.InfrastructureRef = templateRef("of-md")
	u := NewUsage(fake.NewClientBuilder().WithScheme(s).WithObjects(md,
		owner("a", nil), owner("b", nil), owner("elsewhere", func(set *clusterv1.MachineSet) { set.Namespace = "other" }),
		owner("leaves", func(set *clusterv1.MachineSet) { set.DeletionTimestamp, set.Finalizers = &now, []string{"f/f"} })).Build())
	for name, other := range map[string]string{"a": "b", "b": "a"} {
		got, err := u.Read(t.Context(), owner(name, nil))
		if err != nil {
			t.Fatal(err)
		}
		want := UsedTemplates{{}: true, templateRef("of-md"): true, templateRef(other): true, templateRef("shared"): true}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
