package manager

import (
	"testing"

	"k8s.io/component-base/featuregate"

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
	for name, want := range map[string]bool{
		"MachinePool": true, "MachineSetPreflightChecks": true, "PriorityQueue": true, "ReconcilerRateLimiting": true,
		"MachineWaitForVolumeDetachConsiderVolumeAttachments": true, "ClusterTopology": false, "RuntimeSDK": false,
		"InPlaceUpdates": false, "KubeadmBootstrapFormatIgnition": false, "MachineTaintPropagation": false,
	} {
		spec, known := gates.GetAll()[featuregate.Feature(name)]
		if !known || spec.Default != want {
			t.Errorf("%s: known %v, default %v", name, known, spec.Default)
		}
	}
}
