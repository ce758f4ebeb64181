package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/fault"
)

func TestSupported(t *testing.T) { // FL-07
	cases := map[string]struct {
		server   string
		topology bool
		ok       bool
	}{
		"current":            {"v1.36.3", true, true},
		"vendor suffix":      {"v1.33.1+k3s1", false, true},
		"oldest":             {"v1.20.0", false, true},
		"too old":            {"v1.19.16", false, false},
		"topology asks more": {"v1.21.5", true, false},
		"no version":         {"unknown", false, false},
	}
	for name, tc := range cases {
		err := supported(tc.server, tc.topology)
		if (err == nil) != tc.ok || (err != nil && fault.KindOf(err) != fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGates(t *testing.T) { // FG-01
	gates, err := NewGates()
	if err != nil {
		t.Fatal(err)
	}
	type gate struct {
		On    bool
		Stage string
	}
	alpha, beta := gate{false, "ALPHA"}, gate{true, "BETA"}
	want := map[string]gate{
		"MachinePool": beta, "MachineSetPreflightChecks": beta, "PriorityQueue": beta, "ReconcilerRateLimiting": beta,
		"MachineWaitForVolumeDetachConsiderVolumeAttachments": {true, ""}, // GA
		"ClusterTopology": alpha, "RuntimeSDK": alpha, "InPlaceUpdates": alpha, "KubeadmBootstrapFormatIgnition": alpha,
		"MachineTaintPropagation": alpha, "AllAlpha": alpha, "AllBeta": {false, "BETA"},
	}
	got := map[string]gate{}
	for name, spec := range gates.GetAll() {
		got[string(name)] = gate{spec.Default, string(spec.PreRelease)}
		if gates.Enabled(name) != spec.Default {
			t.Errorf("%s is not what it is by default", name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	for _, value := range []string{"NoSuchGate=true", "MachinePool=perhaps", "MachinePool"} {
		if err := gates.Set(value); err == nil {
			t.Errorf("%s is accepted", value)
		}
	}
}
