package reconciler

import (
	"reflect"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler/pacing"
)

// Urgent declares which status changes are written at once because something waits for them. All other changes are
// informational; they are combined and written later. A change of the Paused condition is always urgent.
type Urgent struct {
	// Fields are status fields whose every change is urgent. For the fields in Later the first value is not urgent.
	Fields, Later []string
	// Conditions are urgent when they become True or stop being True. While such a condition is not True, a change
	// of its message is written soon, because the message explains what is missing.
	Conditions []string
	// Lapses are conditions that start as True unless something is wrong. They are urgent when they become True or
	// stop being True after they were reported once.
	Lapses []string
	// Replicas makes the change urgent with which the last replica becomes available or the last surplus replica is
	// gone.
	Replicas bool
}

// reconcileSummary describes the reconciliation that produced a status change.
type reconcileSummary struct {
	deleting bool
	// acted is set if other objects were changed, because further status changes will follow soon.
	acted bool
	// person is set if a user has to act.
	person bool
}

// urgencyOf returns the urgency of a status change.
func (u Urgent) urgencyOf(change *kube.StatusChange, c reconcileSummary) pacing.Urgency {
	have, want := change.Have, change.Want
	switch {
	case !c.deleting && u.isUrgent(have, want):
		return pacing.Urgent
	case isInitial(have, c.deleting) && c.person:
		return pacing.InitialUserAction
	case isInitial(have, c.deleting) && c.deleting:
		return pacing.DeletionStarted
	case isInitial(have, c.deleting):
		return pacing.Initial
	case u.explains(have, want):
		return pacing.Explanatory
	case c.acted:
		return pacing.InProgress
	}
	return pacing.Deferrable
}

// isInitial reports whether the object is new or newly deleted, so that its status does not reflect that yet.
func isInitial(have map[string]any, deleting bool) bool {
	return len(have) == 0 || deleting && statusOf(have, clusterv1.DeletingCondition) != "True"
}

// isUrgent reports whether a change includes anything that is declared as urgent.
func (u Urgent) isUrgent(have, want map[string]any) bool {
	changed := func(field string) bool { return !reflect.DeepEqual(have[field], want[field]) }
	turned := func(t string) bool {
		after := statusOf(want, t)
		return after != "" && (statusOf(have, t) == "True") != (after == "True")
	}
	replaced := func(field string) bool { return have[field] != nil && changed(field) }
	lapsed := func(t string) bool { return statusOf(have, t) != "" && turned(t) }
	return slices.ContainsFunc(u.Fields, changed) || slices.ContainsFunc(u.Later, replaced) || turned(clusterv1.PausedCondition) || slices.ContainsFunc(u.Conditions, turned) ||
		slices.ContainsFunc(u.Lapses, lapsed) || u.Replicas && isComplete(have, want)
}

// isComplete reports whether the last replica became available or the last surplus replica is gone.
func isComplete(have, want map[string]any) bool {
	available, changed := want["availableReplicas"], !reflect.DeepEqual(want["availableReplicas"], have["availableReplicas"])
	none := available == nil || len(have) == 0 && reflect.DeepEqual(available, 0.0)
	return changed && !none && reflect.DeepEqual(available, want["replicas"])
}

// explains reports whether the reason of any condition changed, or the message of an urgent condition, which is a
// summary and retains its reason.
func (u Urgent) explains(have, want map[string]any) bool {
	list, _ := want["conditions"].([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		after, _ := item.(map[string]any)
		before := conditionOf(have, after["type"])
		t, _ := after["type"].(string)
		return before != nil && (before["reason"] != after["reason"] ||
			slices.Contains(u.Conditions, t) && after["status"] != "True" && before["message"] != after["message"])
	})
}

func statusOf(status map[string]any, conditionType string) string {
	s, _ := conditionOf(status, conditionType)["status"].(string)
	return s
}

// conditionOf returns the condition with this type, or nil.
func conditionOf(status map[string]any, conditionType any) map[string]any {
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == conditionType {
			return c
		}
	}
	return nil
}
