package hosts

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// Only a free host without files of Slipway can be confirmed as reinstalled, and not without the operator.
func TestReinstalled(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*infrav1.SSHHost)
		facts  string
		flags  reinstalledFlags
		fails  string // reason of the error
		last   string
	}{
		"reinstalled":    {"it has nothing of Slipway", nil, "HOSTNAME=h1\nRECORD=false\n", reinstalledFlags{yes: true}, "", ""},
		"bundles":        {"an installer would have deleted them", nil, "HOSTNAME=h1\nBUNDLE=" + strings.Repeat("a", 64) + "\n", reinstalledFlags{yes: true}, "NotReinstalled", "team-a"},
		"record":         {"another management cluster uses it", nil, "HOSTNAME=h1\nRECORD=true\n", reinstalledFlags{yes: true}, "NotReinstalled", "team-a"},
		"without checks": {"the operator knows better", nil, "RECORD=true\n", reinstalledFlags{yes: true, noCheck: true}, "", ""},
		"claimed": {"its node runs", func(h *infrav1.SSHHost) {
			h.Status.Claim = &infrav1.SSHHostClaim{Namespace: "team-a", Name: "m", ClaimID: claimID}
		}, "RECORD=false\n", reinstalledFlags{yes: true}, reasonInUse, "team-a"},
		"never used": {"there is nothing to remove", func(h *infrav1.SSHHost) { h.Annotations = nil }, "RECORD=false\n", reinstalledFlags{yes: true}, "", ""},
	} {
		w, host := checkWorld(t)
		w.server.Answer("facts", tc.facts)
		host.Annotations = map[string]string{infrav1.LastNamespaceAnnotation: "team-a", "other": "x"}
		if tc.change != nil {
			tc.change(host)
		}
		status := host.Status
		if err := w.connection.Client.Update(t.Context(), host); err != nil {
			t.Fatal(err)
		}
		host.Status = status
		err := tc.flags.run(t.Context(), w.env, w.connection, []*infrav1.SSHHost{host})
		if f := fault.As(err); (f == nil) != (tc.fails == "") || f != nil && f.Reason != tc.fails {
			t.Errorf("%s: %v (%s)", name, err, tc.reason)
		}
		got := &infrav1.SSHHost{}
		if err := w.connection.Client.Get(t.Context(), client.ObjectKeyFromObject(host), got); err != nil {
			t.Fatal(err)
		}
		if last := inventory.LastNamespace(got); last != tc.last {
			t.Errorf("%s: it was used by %q, want %q (%s)", name, last, tc.last, tc.reason)
		}
	}
	// Without a terminal nobody confirms it.
	w, host := checkWorld(t)
	w.server.Answer("facts", "RECORD=false\n")
	if err := (reinstalledFlags{}).run(t.Context(), w.env, w.connection, []*infrav1.SSHHost{host}); err == nil {
		t.Error("it was not confirmed")
	}
}
