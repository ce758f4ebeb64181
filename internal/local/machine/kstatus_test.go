package machine

import (
	"testing"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/kstatus"
)

// Tools that wait for objects of any kind wait for a LocalMachine: clients 5.
func TestKstatus(t *testing.T) {
	s := snapshot{Now: now, Name: name, Machine: coreMachine(nil), Cluster: coreCluster(nil), Network: localCluster(), Object: localMachine(withID),
		HostMachine: host(backend.Running), Progress: &backend.Progress{Phase: backend.InProgress}}
	s.Capabilities.Scripted, s.Object.Generation = true, 1
	report := func() string {
		s.Object.Status = report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.LocalMachineStatus)
		return kstatus.Compute(t, s.Object)
	}
	if got := report(); got != kstatus.InProgress {
		t.Errorf("its bootstrap data runs: %s", got)
	}
	s.Progress = &backend.Progress{Phase: backend.Succeeded}
	if got := report(); got != kstatus.Current {
		t.Errorf("ready: %s, %+v", got, s.Object.Status.Conditions)
	}
	s.Object.Generation = 2
	if got := kstatus.Compute(t, s.Object); got != kstatus.InProgress {
		t.Errorf("changed, and not reconciled yet: %s", got)
	}
	if got := report(); got != kstatus.Current {
		t.Errorf("changed: %s", got)
	}
}
