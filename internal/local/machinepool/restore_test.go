package machinepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// restored is a pool as a backup keeps it: its list knows two machines, its status is lost.
func restored(replicas int32, members ...poolMember) snapshot {
	s := newSnapshot(replicas, members...)
	s.Object.Status = infrav1.LocalMachinePoolStatus{}
	s.Object.Spec.ProviderIDList = []string{backend.ProviderID("a"), backend.ProviderID("b")}
	return s
}

// bare is a machine as a backup keeps it: it has its ID and no status.
func bare(name, words string) poolMember {
	m := member(name, 1, words)
	m.Local.Spec.ProviderID, m.Local.Status = backend.ProviderID(name), infrav1.LocalMachineStatus{}
	return m
}

func TestRestored(t *testing.T) { // OR-01
	a, b := "slipway:///a", "slipway:///b"
	wait := func(names string) string {
		return "wait: Waiting for " + names + " to be restored and reconciled; if a machine will not be restored, delete its remaining objects and remove its ID from spec.providerIDList"
	}
	orphan := member("a", 1, "ready owned")
	orphan.Local.OwnerReferences = nil
	cases := map[string]struct {
		reason   string
		s        snapshot
		want     []string
		recorded bool
	}{
		"pool first":  {"its machines are still to come: none is made", restored(2), []string{wait(a + ", " + b)}, false},
		"one is back": {"the other is not", restored(2, member("a", 1, "ready owned")), []string{wait(b)}, false},
		"no word yet": {"of their state: one that is taken for broken would go first",
			restored(1, bare("a", "owned"), bare("b", "owned")), []string{wait(a + ", " + b)}, false},
		"Machine not back": {"one would be removed past its drain", restored(1, member("a", 1, "ready"), member("b", 1, "ready owned")), []string{wait(a)}, false},
		"owner lost":       {"it is ours while we wait", restored(2, orphan), []string{"do: own LocalMachine a: it was created for the pool and lost its owner", wait(b)}, false},
		"all back":         {"and nothing is to be done", restored(2, member("a", 1, "ready owned"), member("b", 1, "ready owned")), nil, true},
		"not booted again": {"the list keeps what it knew", restored(2, member("a", 1, "ready owned"), again("b")), nil, true},
		"deleting": {"what is there goes", func() snapshot {
			s := restored(2, member("a", 1, "ready owned"))
			s.Object.DeletionTimestamp, s.Object.Spec.ProviderIDList = &metav1.Time{Time: now}, []string{a}
			return s
		}(), []string{"do: delete Machine a: the pool is being deleted", "wait: Waiting for LocalMachines a to be deleted"}, true},
		"new": {"no list, so nothing is awaited", func() snapshot {
			s := restored(0)
			s.Object.Spec.ProviderIDList = nil
			return s
		}(), nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
			var got []string
			for _, a := range p.Actions {
				got = append(got, "do: "+a.String())
			}
			for _, w := range p.Waits {
				got = append(got, "wait: "+w.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			status := report(tc.s, p, reconciler.Outcome{Done: p.Actions}).Status.(infrav1.LocalMachinePoolStatus)
			if (status.Replicas != nil) != tc.recorded || status.InfrastructureMachineKind != localMachineKind {
				t.Errorf("%s: status %+v, want it on record: %t", tc.reason, status, tc.recorded)
			}
		})
	}
}

// again is a machine that says that it is being looked at again.
func again(name string) poolMember {
	m := bare(name, "owned")
	m.Local.Status.Conditions = member(name, 1, "new").Local.Status.Conditions
	return m
}
