package describe

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CX-09: what --echo is about.
func TestEchoes(t *testing.T) {
	ready := func(status, reason, message string) *Object {
		return &Object{Kind: "Machine", Conditions: []Condition{{Type: "Ready", Status: metav1.ConditionStatus(status), Reason: reason, Message: message}}}
	}
	waiting := ready("False", "NotReady", "* InfrastructureReady:\n  * Container: no image\n* NodeHealthy: no node")
	cases := map[string]struct {
		reason        string
		child, parent *Object
		want          bool
	}{
		"ready":       {"nothing to add", ready("True", "Ready", "fine"), waiting, true},
		"no state":    {"nothing to say", &Object{Kind: "Config"}, waiting, true},
		"contained":   {"the parent's message has it all, indented", ready("False", "Broken", "* Container: no image"), waiting, true},
		"more":        {"a line that the parent does not have", ready("False", "Broken", "* Container: no image\n* Disk: full"), waiting, false},
		"other":       {"the parent does not know yet", ready("False", "Broken", "x"), ready("Unknown", "NotYet", "x"), false},
		"no message":  {"only the reason can be compared", ready("False", "Broken", ""), waiting, false},
		"same reason": {"and it is the same", ready("False", "NotReady", ""), waiting, true},
		"missing":     {"an object that is not there is always worth a row", &Object{Missing: "does not exist"}, waiting, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := repeatsParent(tc.child, tc.parent); got != tc.want {
				t.Errorf("%s: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
