package hosts

import (
	"testing"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// TestTooManyCalls checks that a host that was not contacted, because other hosts took all the time, is not reported as unreachable.
func TestTooManyCalls(t *testing.T) {
	host := &fakeHost{}
	w := newWorld(t, build(t, sshHost(nil)).Build(), host)
	w.reconcile()
	if got := w.get(); got.Status.State != infrav1.SSHHostAvailable {
		t.Fatalf("%+v", got.Status)
	}
	host.down, w.at = fault.New(fault.Unreachable, remote.ReasonBusy, "too many calls"), w.at.Add(checkInterval)
	w.reconcile()
	if got := w.get(); got.Status.State != infrav1.SSHHostAvailable || len(host.targets) < 2 {
		t.Errorf("%d connections, %+v", len(host.targets), got.Status)
	}
}
