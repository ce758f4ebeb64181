package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The wait of a drain names the budget that the last evictions were rejected for, as the condition does (newcomer 1).
func TestDrainWait(t *testing.T) {
	before := func(reason, message string) func(*snapshot) {
		return func(s *snapshot) {
			s.Machine.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: reason, Message: message}}
		}
	}
	const head, budget = "Draining Node n since 2026-01-02T03:03:05Z", "* Pods that cannot be evicted, a PodDisruptionBudget does not allow it now: web needs 2: app/a, app/c"
	for name, tc := range map[string]struct {
		reason string
		change func(*snapshot)
		want   string
	}{
		"first":      {"no eviction was tried", func(*snapshot) {}, head + "\n* Pods still to be evicted: app/a, app/b"},
		"refused":    {"the reason is repeated", before("DrainingNode", head+"\n* Terminating Pods: app/x\n"+budget), head + "\n" + budget},
		"others":     {"the Pods of the reason are gone", before("DrainingNode", head+"\n* Pods that cannot be evicted, x: app/aa, xapp/b"), head + "\n* Pods still to be evicted: app/a, app/b"},
		"other wait": {"another stage has other messages", before("WaitingForPreDrainHook", head+"\n"+budget), head + "\n* Pods still to be evicted: app/a, app/b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := settled(deleted, external, holding(aPod("a"), aPod("b")), drainingSince(time.Minute), tc.change)
			p := decide(s)
			if len(p.Waits) == 0 {
				t.Fatalf("%s: no wait in %+v", tc.reason, p)
			}
			if diff := cmp.Diff(tc.want, p.Waits[0].Message); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
