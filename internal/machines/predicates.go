package machines

import (
	"maps"
	"reflect"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/slipwayhq/slipway/internal/condition"
)

// Changed is the predicate for the watches of Machines in the MachineSet and KubeadmControlPlane controllers. It
// selects changes that affect the owner and ignores most of a Machine's status, so that a change of a field that it
// does not compare enqueues no owner. Owners can add condition types to the ones that all owners evaluate.
func Changed(conditionTypes ...string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1.Machine)
		after, ok2 := e.ObjectNew.(*clusterv1.Machine)
		return !ok || !ok2 || concernsOwner(before, after, conditionTypes...)
	}}
}

// concernsOwner reports whether a change of a Machine affects its owner. If an owner reads another field, the field has
// to be compared here, because other changes do not enqueue the owner. A delay until the next reconciliation may be
// acceptable.
func concernsOwner(before, after *clusterv1.Machine, conditionTypes ...string) bool {
	conditionTypes = append(conditionTypes, clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition,
		clusterv1.MachineUpToDateCondition, clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition,
		clusterv1.MachineNodeHealthyCondition, clusterv1.MachineNodeReadyCondition)
	return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.Status.NodeRef != after.Status.NodeRef ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
		!slices.Equal(before.Finalizers, after.Finalizers) ||
		!reflect.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
		before.Generation != after.Generation && !sameSpec(before.Spec, after.Spec) ||
		!slices.Equal(conditionTexts(before, conditionTypes), conditionTexts(after, conditionTypes))
}

// sameSpec compares the fields that an owner applies or counts.
func sameSpec(a, b clusterv1.MachineSpec) bool {
	return a.Version == b.Version && a.FailureDomain == b.FailureDomain && SameDeletion(a.Deletion, b.Deletion) &&
		sameSeconds(a.MinReadySeconds, b.MinReadySeconds) && slices.Equal(a.ReadinessGates, b.ReadinessGates) && slices.Equal(a.Taints, b.Taints)
}

// conditionTexts returns the conditions without their times.
func conditionTexts(m *clusterv1.Machine, conditionTypes []string) []string {
	var out []string
	for _, t := range conditionTypes {
		if c := condition.Set(m.Status.Conditions).Get(t); c != nil {
			out = append(out, t, string(c.Status), c.Reason, c.Message)
		}
	}
	return out
}
