package inventory_test

import (
	"strings"
	"testing"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

func TestShortage(t *testing.T) {
	role := func(name string) func(*infrav1.SSHHost) {
		return func(h *infrav1.SSHHost) { h.Labels = map[string]string{"role": name} }
	}
	busy := func(h *infrav1.SSHHost) {
		h.Status.State, h.Status.Claim = infrav1.SSHHostInUse, &infrav1.SSHHostClaim{}
	}
	hosts := []*infrav1.SSHHost{host("a", role("cp")), host("b", role("cp")), host("c", role("worker")), host("d", busy)}
	groups := func(controlPlanes, workers int, labels map[string]string) []inventory.Group {
		return []inventory.Group{{Name: "the control plane", Count: controlPlanes, Labels: labels}, {Name: "the workers", Count: workers}}
	}
	for name, tc := range map[string]struct {
		reason string
		groups []inventory.Group
		want   string
	}{
		"enough":        {"one host for each machine", groups(1, 2, nil), ""},
		"labels":        {"enough with the labels", groups(2, 1, map[string]string{"role": "cp"}), ""},
		"none needed":   {"no machines", groups(0, 0, map[string]string{"role": "x"}), ""},
		"too few":       {"the reason why others cannot be claimed", groups(0, 5, nil), "2 SSHHosts are missing for the workers (any labels): 5 needed, 3 can be claimed, 1 in use"},
		"too few of it": {"with the labels", groups(3, 0, map[string]string{"role": "cp"}), "1 SSHHost is missing for the control plane (labels role=cp): 3 needed, 2 can be claimed, 2 of 4 that are offered to namespace team-a match"},
		"together":      {"a host cannot be used twice", groups(2, 2, map[string]string{"role": "cp"}), "1 SSHHost is missing together, because several groups need the same ones: 4 needed, 3 can be claimed"},
		"one and all":   {"the number for all groups, also if one of them alone needs too many", groups(1, 5, map[string]string{"role": "cp"}), "; 3 SSHHosts are missing together, because several groups need the same ones: 6 needed, 3 can be claimed"},
		"both":          {"all are listed", groups(3, 4, map[string]string{"role": "cp"}), "; 1 SSHHost is missing for the workers"},
	} {
		if got := inventory.Shortage(teamA, hosts, tc.groups); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q (%s)", name, got, tc.want, tc.reason)
		}
	}
	if got := inventory.Shortage(inventory.Namespace{Name: "team-b"}, hosts, groups(1, 0, nil)); !strings.Contains(got, "none is offered to namespace team-b") {
		t.Errorf("nothing is disclosed: %q", got)
	}
}
