package inplace

import (
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The annotations are the protocol of Cluster API between the owner of a Machine (a MachineSet or a control plane), the
// Machine controller and MachineDeployments. Each of them reads the state of an update with [StateOf] and changes only
// its own part.

// Hook is the name of UpdateMachine in the pending-hooks annotation.
const Hook = "UpdateMachine"

// State is the state of a Machine's in-place update. [StateOf] derives it from the Machine's annotations.
type State string

// The states of an in-place update. A Machine passes through them in this order, from Moving or Triggering to
// Ending, and then returns to None.
const (
	// None means that there is no update.
	None State = ""
	// Moving means that the Machine was moved to another MachineSet, whose replicas do not include it yet.
	Moving State = "Moving"
	// Triggering means that the Machine is annotated and its owner is writing the desired objects.
	Triggering State = "Triggering"
	// Updating means that the desired objects are written and the extension is called.
	Updating State = "Updating"
	// Ending means that the update-in-progress annotation is removed and only the pending hook is left.
	Ending State = "Ending"
)

// StateOf returns the state of a Machine's in-place update. The Machine controller and the owners' controllers call it.
func StateOf(m *clusterv1.Machine) State {
	_, moving := m.Annotations[clusterv1.PendingAcknowledgeMoveAnnotation]
	switch marked, pending := IsMarked(m), isPending(m); {
	case marked && pending:
		return Updating
	case marked && moving:
		return Moving
	case marked:
		return Triggering
	case pending:
		return Ending
	}
	return None
}

// isUpdating reports whether an in-place update of a Machine is in progress.
func isUpdating(m *clusterv1.Machine) bool { return StateOf(m) != None }

// HasFailed reports whether the extension reported that the update of a Machine failed. The owners' controllers call
// it: such a Machine does not count as being updated.
func HasFailed(m *clusterv1.Machine) bool {
	for _, c := range m.Status.Conditions {
		if c.Type == clusterv1.MachineUpdatingCondition {
			return c.Reason == clusterv1.MachineInPlaceUpdateFailedReason
		}
	}
	return false
}

// IsMarked reports whether a Machine or a referenced object has the update-in-progress annotation. The Machine
// controller and the owners' controllers call it.
func IsMarked(o client.Object) bool {
	_, marked := o.GetAnnotations()[clusterv1.UpdateInProgressAnnotation]
	return marked
}

// isPending reports whether the UpdateMachine hook of a Machine is pending or in progress.
func isPending(o client.Object) bool { return slices.Contains(pendingHooks(o), Hook) }

// WithHook returns the value of the pending-hooks annotation with UpdateMachine added. The owners' controllers write it
// as the last step of starting an update.
func WithHook(o client.Object) string {
	names := append(pendingHooks(o), Hook)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// WithoutHook returns the value of the pending-hooks annotation without UpdateMachine, or nil if no hook is left
// and the annotation must be removed. The Machine controller writes it as the last step of an update.
func WithoutHook(o client.Object) *string {
	names := slices.DeleteFunc(pendingHooks(o), func(name string) bool { return name == Hook })
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	value := strings.Join(slices.Compact(names), ",")
	return &value
}

func pendingHooks(o client.Object) []string {
	var out []string
	for name := range strings.SplitSeq(o.GetAnnotations()[runtimev1.PendingHooksAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// WithoutMarks returns the annotations of a Machine template without the annotations that controllers set on
// Machines and remove during an in-place update. Otherwise the owner would set them again on every reconciliation. The
// controllers of all owners call it when they compute the desired Machine.
func WithoutMarks(annotations map[string]string) map[string]string {
	marks := []string{clusterv1.PendingAcknowledgeMoveAnnotation, clusterv1.UpdateInProgressAnnotation, runtimev1.PendingHooksAnnotation}
	if !slices.ContainsFunc(marks, func(key string) bool { _, has := annotations[key]; return has }) {
		return annotations
	}
	out := maps.Clone(annotations)
	for _, key := range marks {
		delete(out, key)
	}
	return out
}
