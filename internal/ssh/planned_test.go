package ssh

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// plannedObjects are the objects of a simulation by kind.
type plannedObjects map[string][]*unstructured.Unstructured

// OfKind implements [world.Objects].
func (o plannedObjects) OfKind(kind schema.GroupKind) []*unstructured.Unstructured {
	return o[kind.Kind]
}

// The host of a machine that died before its record was written stays released, and the machine takes and releases another one.
func TestPlanWithoutDeadHost(t *testing.T) {
	const claimID = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	host := func(name string, state infrav1.SSHHostState, claim *infrav1.SSHHostClaim) *unstructured.Unstructured {
		h := &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: name, Generation: 1}}
		h.Spec.OfferedTo = &metav1.LabelSelector{}
		h.Status.State, h.Status.ObservedGeneration, h.Status.Claim = state, 1, claim
		return object(t, h, "SSHHost")
	}
	m := &infrav1.SSHMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "m"}}
	m.Spec.ClaimID = claimID
	machine, owner := object(t, m, "SSHMachine"), object(t, &clusterv1.Machine{}, "Machine")
	claim := infrav1.SSHHostClaim{Namespace: "team-a", Name: "m", ClaimID: claimID}
	released := claim
	released.Released = ptr.To(true)
	objects := plannedObjects{
		"Namespace": {object(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, "Namespace")},
		"SSHHost":   {host("dead", infrav1.SSHHostUnreachable, &released), host("free", infrav1.SSHHostAvailable, nil)},
	}
	got, err := PlannedInventory(true).Claim(objects, machine, owner)
	if err != nil || got.Host == nil || got.Host.GetName() != "free" {
		t.Errorf("claimed %v, %v", got.Host, err)
	}
	objects["SSHHost"][1] = host("free", infrav1.SSHHostInUse, &claim)
	if got, err := PlannedInventory(true).Release(objects, machine); err != nil || got == nil || got.GetName() != "free" {
		t.Errorf("released %v, %v", got, err)
	}
}

func object(t *testing.T, o any, kind string) *unstructured.Unstructured {
	t.Helper()
	u, err := untyped(o, schema.GroupKind{Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	return u
}
