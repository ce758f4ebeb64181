package inplace

import (
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Hook is the name of UpdateMachine in the annotation of pending hooks.
const Hook = "UpdateMachine"

// State is how far the in-place update of a Machine is, by its annotations.
type State string

// The states. A Machine goes through them in this order, and leaves them in the reverse order.
const (
	// None: no update.
	None State = ""
	// Moving: the Machine was moved to another MachineSet, and its MachineDeployment does not count it there yet.
	Moving State = "Moving"
	// Triggering: it is marked; its owner writes the desired objects.
	Triggering State = "Triggering"
	// Updating: the desired objects are written, and the extension is called.
	Updating State = "Updating"
	// Ending: the mark is gone, and the pending hook is left to remove.
	Ending State = "Ending"
)

// StateOf returns the state of a Machine.
func StateOf(m *clusterv1.Machine) State {
	_, moving := m.Annotations[clusterv1.PendingAcknowledgeMoveAnnotation]
	switch marked, pending := IsMarked(m), IsPending(m); {
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

// IsUpdating reports whether an in-place update of a Machine has begun and is not over.
func IsUpdating(m *clusterv1.Machine) bool { return StateOf(m) != None }

// HasFailed reports whether the extension said that the update of a Machine has failed.
func HasFailed(m *clusterv1.Machine) bool {
	for _, c := range m.Status.Conditions {
		if c.Type == clusterv1.MachineUpdatingCondition {
			return c.Reason == clusterv1.MachineInPlaceUpdateFailedReason
		}
	}
	return false
}

// IsMarked reports whether an object, a Machine or one that it refers to, has the mark of an update in progress.
func IsMarked(o client.Object) bool {
	_, marked := o.GetAnnotations()[clusterv1.UpdateInProgressAnnotation]
	return marked
}

// IsPending reports whether UpdateMachine is still to be called for a Machine, or was called and did not end.
func IsPending(o client.Object) bool { return slices.Contains(pendingHooks(o), Hook) }

// WithHook is the annotation of pending hooks of an object with UpdateMachine in it.
func WithHook(o client.Object) string {
	names := append(pendingHooks(o), Hook)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// WithoutHook is the annotation without UpdateMachine. Other hooks stay; nil: none is left, and the annotation goes.
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

// WithoutMarks returns the annotations of a template of Machines without those that controllers set on Machines during an update in
// place, and remove: its owner would set them again each time.
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
