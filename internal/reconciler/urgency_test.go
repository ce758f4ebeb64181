package reconciler

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func reported(conditionType, status, reason, message string) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{"type": conditionType, "status": status, "reason": reason, "message": message}}}
}

func TestExplains(t *testing.T) {
	cases := map[string]struct {
		reason     string
		have, want map[string]any
		explains   bool
	}{
		"reason":        {"what was waited for is there", reported("MachineProvisioned", "False", "WaitingForInfrastructure", "a"), reported("MachineProvisioned", "False", "WaitingForBootstrapData", "b"), true},
		"came true":     {"nothing is waited for", reported("InfrastructureReady", "False", "NotReady", "a"), reported("InfrastructureReady", "True", "Ready", ""), true},
		"summary":       {"the reason of a summary is always the same: its message tells", reported("Ready", "False", "NotReady", "a"), reported("Ready", "False", "NotReady", "b"), true},
		"good summary":  {"nothing has to be explained", reported("Available", "True", "Available", "a"), reported("Available", "True", "Available", "b"), false},
		"only counts":   {"the same goes on", reported("ScalingUp", "True", "ScalingUp", "from 1 to 3"), reported("ScalingUp", "True", "ScalingUp", "from 2 to 3"), false},
		"first":         {"nothing wrong is said yet", nil, reported("Ready", "False", "NotReady", "a"), false},
		"new condition": {"nothing wrong was said", reported("Ready", "True", "Ready", ""), reported("Deleting", "False", "NotDeleting", ""), false},
		"unreadable":    {"what is no condition explains nothing", reported("Ready", "True", "Ready", ""), map[string]any{"conditions": []any{1, nil}}, false},
	}
	for name, tc := range cases {
		if got := (Urgent{Conditions: []string{clusterv1.ReadyCondition, clusterv1.AvailableCondition}}).explains(tc.have, tc.want); got != tc.explains {
			t.Errorf("%s: explains %t, but %s", name, got, tc.reason)
		}
	}
}

// A reason that is no longer true is not held back for longer than half a window, however often the object changes.
func TestStaleReasonIsWrittenSoon(t *testing.T) { // FG-03
	p := newPaced(t)
	say := func(reason, message string) {
		p.status.Conditions = []metav1.Condition{{Type: "InfrastructureReady", Status: "False", Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0))}}
	}
	say("WaitingForInfrastructure", "a")
	p.pass("a new object is given time to say more", 0, 0, 2*time.Second)
	p.pass("then it is written", 2*time.Second, 1, 0)
	say("WaitingForInfrastructure", "b")
	p.pass("another message waits", 100*time.Millisecond, 1, 3900*time.Millisecond)
	say("WaitingForBootstrapData", "c")
	p.pass("another reason waits for half a window", 100*time.Millisecond, 1, 500*time.Millisecond)
	say("CreatingMachine", "d")
	p.pass("from its first sight on", 400*time.Millisecond, 1, 100*time.Millisecond)
	p.pass("and no longer", 100*time.Millisecond, 2, 0)
	say("WaitingForBootstrapData", "e")
	p.pass("a reason that was there for a moment", 100*time.Millisecond, 2, 500*time.Millisecond)
	say("CreatingMachine", "f")
	p.pass("is not waited for any more when it is gone", 400*time.Millisecond, 2, 3500*time.Millisecond)
}

// What a person has to do about a new object is not held back until much has become of it, even where it was not known at once.
func TestWhatAPersonHasToDoIsWrittenSoon(t *testing.T) { // FG-03
	p := newPaced(t)
	p.status.Conditions = []metav1.Condition{{Type: "InfrastructureReady", Status: "False", Reason: "Waiting", LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0))}}
	p.pass("a new object is given time to say more", 0, 0, 2*time.Second)
	p.waits = []Wait{{Reason: "NoImage", Message: "build the image", Until: UntilUser}}
	p.pass("where a person has to act, half a window", 700*time.Millisecond, 0, 500*time.Millisecond)
	p.waits = nil
	p.pass("not when that was there for a moment", 100*time.Millisecond, 0, 1200*time.Millisecond)
	p.waits = []Wait{{Reason: "NoImage", Message: "build the image", Until: UntilUser}}
	p.pass("half a window from its first sight on", 100*time.Millisecond, 0, 500*time.Millisecond)
	p.pass("and no longer", 500*time.Millisecond, 1, 0)
	p.pass("nothing changes", time.Second, 1, 0)
}
