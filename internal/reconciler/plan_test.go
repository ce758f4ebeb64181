package reconciler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPersonEvents(t *testing.T) {
	const missing = "Secret a has no key b; add it"
	plan := func(end func(w *Wait)) Plan {
		var p Plan
		end(p.WaitFor("WaitingForCorrection", missing).For("Secret", "a"))
		return p
	}
	person, change := plan(func(w *Wait) { w.UntilUserActs() }), plan(func(w *Wait) { w.ToChange("data") })
	said, other := []metav1.Condition{{Message: "* Ready: " + missing}}, []metav1.Condition{{Message: "x"}}
	for name, c := range map[string]struct {
		reason        string
		plan          Plan
		before, after []metav1.Condition
		want          []Event
	}{
		"new":           {"it is told", person, other, said, []Event{Warning("WaitingForCorrection", missing)}},
		"said before":   {"once is enough", person, said, said, nil},
		"not said":      {"another message takes precedence, and it would be told each time", person, nil, other, nil},
		"by itself":     {"it ends without a person", change, other, said, nil},
		"nothing waits": {"", Plan{}, nil, said, nil},
	} {
		if diff := cmp.Diff(c.want, UserActionEvents(c.plan, c.before, c.after)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
	}
}
