package loop

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PersonEvents are warnings about what a plan waits for that only a person can end, once for each: when its message is in the
// conditions for the first time.
func PersonEvents(p Plan, before, after []metav1.Condition) []Event {
	var list []Event
	for _, w := range p.Wait {
		says := func(c metav1.Condition) bool { return strings.Contains(c.Message, w.Message) }
		if w.Until == UntilPerson && slices.ContainsFunc(after, says) && !slices.ContainsFunc(before, says) {
			list = append(list, Warning(w.Reason, "%s", w.Message))
		}
	}
	return list
}

// awaitsPerson reports whether anything of the plan waits for what only a person can do.
func (p Plan) awaitsPerson() bool {
	return slices.ContainsFunc(p.Wait, func(w Wait) bool { return w.Until == UntilPerson })
}
