package manager

import (
	"fmt"
	"strings"

	"k8s.io/component-base/featuregate"

	"github.com/slipwayhq/slipway/internal/fault"
)

// The feature gates.
const (
	GateMachinePool               featuregate.Feature = "MachinePool"
	GateMachineSetPreflightChecks featuregate.Feature = "MachineSetPreflightChecks"
	GatePriorityQueue             featuregate.Feature = "PriorityQueue"
	GateReconcilerRateLimiting    featuregate.Feature = "ReconcilerRateLimiting"
	GateVolumeAttachments         featuregate.Feature = "MachineWaitForVolumeDetachConsiderVolumeAttachments"
	GateClusterTopology           featuregate.Feature = "ClusterTopology"
	GateRuntimeSDK                featuregate.Feature = "RuntimeSDK"
	GateInPlaceUpdates            featuregate.Feature = "InPlaceUpdates"
	GateKubeadmBootstrapIgnition  featuregate.Feature = "KubeadmBootstrapFormatIgnition"
	GateMachineTaintPropagation   featuregate.Feature = "MachineTaintPropagation"
)

// NewGates returns the feature gates with their defaults.
func NewGates() (featuregate.MutableFeatureGate, error) {
	gates := featuregate.NewFeatureGate()
	return gates, gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		GateMachinePool:               {Default: true, PreRelease: featuregate.Beta},
		GateMachineSetPreflightChecks: {Default: true, PreRelease: featuregate.Beta},
		GatePriorityQueue:             {Default: true, PreRelease: featuregate.Beta},
		GateReconcilerRateLimiting:    {Default: true, PreRelease: featuregate.Beta},
		GateVolumeAttachments:         {Default: true, PreRelease: featuregate.GA},
		GateClusterTopology:           {Default: false, PreRelease: featuregate.Alpha},
		GateRuntimeSDK:                {Default: false, PreRelease: featuregate.Alpha},
		GateInPlaceUpdates:            {Default: false, PreRelease: featuregate.Alpha},
		GateKubeadmBootstrapIgnition:  {Default: false, PreRelease: featuregate.Alpha},
		GateMachineTaintPropagation:   {Default: false, PreRelease: featuregate.Alpha},
	})
}

// unavailableGates are the gates of features that this version does not have. Their names are known, so that the
// arguments of existing Deployments are accepted as long as they turn the gates off.
func unavailableGates() []featuregate.Feature {
	return []featuregate.Feature{GateInPlaceUpdates}
}

// UnavailableGates says in one sentence which gates cannot be enabled, for the help of the flag.
func UnavailableGates() string {
	var names []string
	for _, gate := range unavailableGates() {
		names = append(names, string(gate))
	}
	return fmt.Sprintf("Not in this version, and so cannot be enabled: %s.", strings.Join(names, ", "))
}

// checkGates refuses gates that would enable nothing, and gates that contradict each other.
func (c Config) checkGates() error {
	for _, gate := range unavailableGates() {
		if c.Gates.Enabled(gate) {
			return fault.New(fault.Invalid, "GateUnavailable",
				"feature gate %s cannot be enabled: this version does not have the feature; leave the gate out of --feature-gates, or set %s=false", gate, gate)
		}
	}
	if c.Gates.Enabled(GateReconcilerRateLimiting) && !c.Gates.Enabled(GatePriorityQueue) {
		return fault.New(fault.Invalid, "GatesContradict",
			"feature gate %s needs %s: enable the second, or disable the first", GateReconcilerRateLimiting, GatePriorityQueue)
	}
	return nil
}
