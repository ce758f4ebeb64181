package manager

import (
	"k8s.io/component-base/featuregate"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
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

// checkGates refuses gates that would enable nothing, and gates that contradict each other. Where the core does not run, extensions are
// those that its manager has discovered.
func (c Config) checkGates() error {
	if c.Gates.Enabled(GateInPlaceUpdates) && !c.Gates.Enabled(GateRuntimeSDK) && c.Policy.Runs(providerset.Core) {
		return fault.New(fault.Invalid, "GatesContradict",
			"feature gate %s needs %s, by which extensions update Machines: enable the second, or disable the first", GateInPlaceUpdates, GateRuntimeSDK)
	}
	if c.Gates.Enabled(GateReconcilerRateLimiting) && !c.Gates.Enabled(GatePriorityQueue) {
		return fault.New(fault.Invalid, "GatesContradict",
			"feature gate %s needs %s: enable the second, or disable the first", GateReconcilerRateLimiting, GatePriorityQueue)
	}
	return nil
}
