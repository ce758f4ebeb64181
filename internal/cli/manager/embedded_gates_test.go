package manager

import (
	"slices"
	"strings"
	"testing"
)

// FG-01, FG-03: the flag of the verb names every gate with its stage and default, and refuses others, and gates that
// contradict each other.
func TestFeatureGatesFlag(t *testing.T) {
	usage := Command(testEnv(nil)).Flags().Lookup("feature-gates").Usage
	for _, line := range []string{
		"MachinePool=true|false (BETA - default=true)", "MachineSetPreflightChecks=true|false (BETA - default=true)",
		"PriorityQueue=true|false (BETA - default=true)", "ReconcilerRateLimiting=true|false (BETA - default=true)",
		"ClusterTopology=true|false (ALPHA - default=false)", "RuntimeSDK=true|false (ALPHA - default=false)",
		"InPlaceUpdates=true|false (ALPHA - default=false)", "KubeadmBootstrapFormatIgnition=true|false (ALPHA - default=false)",
		"MachineTaintPropagation=true|false (ALPHA - default=false)",
	} {
		if !slices.Contains(strings.Split(usage, "\n"), line) {
			t.Errorf("the usage of --feature-gates does not have the line %q:\n%s", line, usage)
		}
	}
	for value, want := range map[string]string{
		"NoSuchGate=true":             "unrecognized feature gate: NoSuchGate",
		"MachinePool":                 "missing bool value for MachinePool",
		"MachinePool=perhaps":         "invalid value of MachinePool=perhaps",
		"MachinePool=true,RuntimeSDK": "missing bool value for RuntimeSDK",
		"MachineTaintPropagation=true,MachinePool=false": "",
		"AllAlpha=true": "",
	} {
		err := Command(testEnv(nil)).ParseFlags([]string{"--feature-gates=" + value})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("--feature-gates=%s: %v, want %q", value, err, want)
		}
	}
}
