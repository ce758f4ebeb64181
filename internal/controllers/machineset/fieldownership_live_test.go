package machineset

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
)

// reference writes as the reference implementation does without server-side apply: by a merge patch, as "manager".
func (l live) reference(o client.Object, change func()) {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	change()
	l.must(l.Patch(l.t.Context(), o, client.MergeFrom(before), client.FieldOwner("manager")))
}

// referenceStatus is the same for a status.
func (l live) referenceStatus(o client.Object, change func()) {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	change()
	l.must(l.Status().Patch(l.t.Context(), o, client.MergeFrom(before), client.FieldOwner("manager")))
}

// TestTakeoverFromTheReferenceImplementation gives the controller a MachineSet and a Machine with the field managers that the
// controllers of the reference implementation leave: capi-machineset by server-side apply, and manager for every status.
func TestTakeoverFromTheReferenceImplementation(t *testing.T) { // MS-08, MS-09, MS-18
	l := startLive(t)
	l.pause(true)
	l.set.Spec = newSet().Spec
	l.set.Spec.Replicas = new(int32(1))
	l.set.Spec.Template.Labels["old"] = "1"
	l.set.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("s")}
	l.set.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachineTemplate", Name: "t"}
	l.must(l.Create(t.Context(), l.set, client.FieldOwner("user")))
	l.reference(l.set, func() { l.set.Finalizers = []string{clusterv1.MachineSetFinalizer} })
	l.referenceStatus(l.set, func() {
		l.set.Status = clusterv1.MachineSetStatus{Replicas: new(int32(1)), ReadyReplicas: new(int32(0)), ObservedGeneration: l.set.Generation,
			Versions: []clusterv1.StatusVersion{{Version: "v1.30.0", Replicas: 9}}, Conditions: []metav1.Condition{stranger()}}
	})
	m := l.plantMachine()
	l.pause(false)
	l.eventually("the ghost of a recovered Machine goes, and what a stranger says stays", func() bool {
		l.must(l.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		said := condition.Set(m.Status.Conditions)
		return said.Get(clusterv1.MachineOwnerRemediatedCondition) == nil && said.Get("Stranger") != nil && said.IsTrue(clusterv1.MachineHealthCheckSucceededCondition)
	})
	l.change(func(s *clusterv1.MachineSet) {
		delete(s.Spec.Template.Labels, "old")
		delete(s.Spec.Template.Annotations, "note")
	})
	l.eventually("label and annotation of the Machine go with those of the template", func() bool {
		l.must(l.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		_, label := m.Labels["old"]
		_, annotation := m.Annotations["note"]
		return !label && !annotation && m.Labels["set"] == "x"
	})
	l.change(func(s *clusterv1.MachineSet) { s.Spec.Replicas = new(int32(0)) })
	l.finishing("the set's status is the controller's", func() bool {
		said := condition.Set(l.set.Status.Conditions)
		return len(l.set.Status.Versions) == 0 && said.Get("Stranger") != nil && said.Get(clusterv1.MachineSetScalingUpCondition) != nil
	})
}

// pause stops everything of the Cluster, as one does before another implementation goes on.
func (l live) pause(paused bool) {
	l.t.Helper()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(c), c))
	before := c.DeepCopy()
	c.Spec.Paused = &paused
	l.must(l.Patch(l.t.Context(), c, client.MergeFrom(before)))
}

// stranger is a condition of a program that has nothing to do with either implementation, and the name that many have.
func stranger() metav1.Condition {
	return metav1.Condition{Type: "Stranger", Status: "True", Reason: "Said", LastTransitionTime: metav1.Now()}
}

// plantMachine makes the Machine of the set as the reference implementation does, with a status that it has left behind: a health
// check had failed, its remediation was deferred, and the Machine has recovered since.
func (l live) plantMachine() *clusterv1.Machine {
	l.t.Helper()
	m := snapshot{Set: l.set}.State().Definition.Machine("m")
	m.Finalizers = nil
	u, err := machines.Applied(m)
	l.must(err)
	l.must(l.Apply(l.t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership))
	l.reference(m, func() { m.Finalizers = []string{clusterv1.MachineFinalizer} })
	at := func(conditionType, status, reason string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, LastTransitionTime: metav1.Now()}
	}
	l.referenceStatus(m, func() {
		m.Status.NodeRef.Name = "m"
		m.Status.Conditions = []metav1.Condition{
			stranger(), at("Ready", "True", "Ready"), at("Available", "True", "Available"), at("NodeHealthy", "True", "NodeHealthy"),
			at(clusterv1.MachineHealthCheckSucceededCondition, "True", clusterv1.MachineHealthCheckSucceededReason),
			at(clusterv1.MachineOwnerRemediatedCondition, "False", clusterv1.MachineSetMachineRemediationDeferredReason),
		}
	})
	entries := m.GetManagedFields()
	if !slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == "manager" && e.Operation == "Update" && e.Subresource == "status"
	}) {
		l.t.Fatalf("managed fields %+v", entries)
	}
	return m
}
