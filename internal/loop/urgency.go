package loop

import (
	"reflect"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/pacing"
)

// Urgent declares which changes of a status something waits for: they are written at once. All others only report, and are
// written some time later, together. That the object is paused, or not any more, is always urgent.
type Urgent struct {
	// Fields of the status, whatever their change; Later are those whose first value nothing waits for.
	Fields, Later []string
	// Conditions, when they become True or cease to be. As long as such a condition is not True its message says what is
	// missing: another message is written soon.
	Conditions []string
	// Lapses are conditions that are True from the beginning unless something is wrong: when they become True or cease to be
	// after they were reported once.
	Lapses []string
	// Replicas: when the last of status.replicas became available, or the last surplus one is gone.
	Replicas bool
}

// course is what a reconciliation found and did.
type course struct {
	// deleting: the object is being deleted.
	deleting bool
	// acted: other objects were changed, of which more is to be said soon.
	acted bool
	// person: a person has to do something.
	person bool
}

// urgencyOf says how long a change of a status may be deferred.
func (u Urgent) urgencyOf(change *kube.StatusChange, c course) pacing.Urgency {
	have, want := change.Have, change.Want
	switch {
	case !c.deleting && u.isUrgent(have, want):
		return pacing.Urgent
	case isInitial(have, c.deleting) && c.person:
		return pacing.Demanding
	case isInitial(have, c.deleting) && c.deleting:
		return pacing.Ending
	case isInitial(have, c.deleting):
		return pacing.Initial
	case u.explains(have, want):
		return pacing.Explanatory
	case c.acted:
		return pacing.Underway
	}
	return pacing.Deferrable
}

// isInitial reports whether an object is new, or newly deleted: nothing of that is in its status.
func isInitial(have map[string]any, deleting bool) bool {
	return len(have) == 0 || deleting && statusOf(have, clusterv1.DeletingCondition) != "True"
}

// isUrgent reports whether a change contains anything that something waits for.
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

// isComplete reports whether the last of the replicas became available, or the last surplus one is gone.
func isComplete(have, want map[string]any) bool {
	available, changed := want["availableReplicas"], !reflect.DeepEqual(want["availableReplicas"], have["availableReplicas"])
	none := available == nil || len(have) == 0 && reflect.DeepEqual(available, 0.0)
	return changed && !none && reflect.DeepEqual(available, want["replicas"])
}

// explains reports whether a condition gives another reason than before, or an urgent one, which is a summary of others and
// keeps its reason, another message.
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

// conditionOf is the condition of a type; nil: there is none.
func conditionOf(status map[string]any, conditionType any) map[string]any {
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == conditionType {
			return c
		}
	}
	return nil
}
