package machines

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// A host enqueues the machine that it belongs to; a host that belongs to none enqueues the machines that wait for one.
func TestHostEvents(t *testing.T) {
	waiting, other := sshMachine(nil), sshMachine(nil)
	other.Name, other.UID, other.Status.HostRef = "other", "o", &infrav1.SSHHostReference{Namespace: "hosts", Name: "x"}
	w := newWorld(t, build(t, waiting, other).Build())
	for name, tc := range map[string]struct {
		change func(*infrav1.SSHHost)
		want   []string
	}{
		"free":    {nil, []string{"team-a/m"}},
		"claimed": {func(h *infrav1.SSHHost) { h.Status.Claim = &infrav1.SSHHostClaim{Namespace: "team-b", Name: "x"} }, []string{"team-b/x"}},
		"recorded": {func(h *infrav1.SSHHost) {
			h.Status.Record = &infrav1.SSHHostRecord{ClaimID: claimB, Namespace: "team-c", Name: "y"}
		}, []string{"team-c/y"}},
	} {
		var got []string
		for _, r := range w.ofHost(t.Context(), sshHost("h", tc.change)) {
			got = append(got, r.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHostChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*infrav1.SSHHost)
		want   bool
	}{
		"nothing":     {func(*infrav1.SSHHost) {}, false},
		"only a time": {func(h *infrav1.SSHHost) { h.Status.StateSince = &metav1.Time{Time: now} }, false},
		"state":       {func(h *infrav1.SSHHost) { h.Status.State = infrav1.SSHHostUnreachable }, true},
		"claim":       {claimed, true},
		"confirmed":   {func(h *infrav1.SSHHost) { h.Status.ConfirmedClaimID = claimA }, true},
		"labels":      {func(h *infrav1.SSHHost) { h.Labels = map[string]string{"a": "b"} }, true},
		"reachable":   {func(h *infrav1.SSHHost) { h.Status.Conditions[0].Status = "False" }, true},
		"spec":        {func(h *infrav1.SSHHost) { h.Generation = 2 }, true},
	} {
		if got := hostChanged().Update(event.UpdateEvent{ObjectOld: sshHost("h", nil), ObjectNew: sshHost("h", tc.change)}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
