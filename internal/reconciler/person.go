package reconciler

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UserActionEvents returns a warning event for every wait that only a user can end. Each wait is reported once, when
// its message first appears in the conditions.
func UserActionEvents(p Plan, before, after []metav1.Condition) []Event {
	var list []Event
	for _, w := range p.Waits {
		says := func(c metav1.Condition) bool { return strings.Contains(c.Message, w.Message) }
		if w.Until == UntilUser && slices.ContainsFunc(after, says) && !slices.ContainsFunc(before, says) {
			list = append(list, Warning(w.Reason, "%s", w.Message))
		}
	}
	return list
}

// awaitsPerson reports whether the plan contains a wait that only a user can end.
func (p Plan) awaitsPerson() bool {
	return slices.ContainsFunc(p.Waits, func(w Wait) bool { return w.Until == UntilUser })
}
