package providerset

import "k8s.io/component-base/featuregate"

// Feature gates.
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

// NewGates returns the feature gates with their defaults, for the flag --feature-gates of the commands that run
// controllers. The names are Cluster API's, which users know, and must not change; package release has an environment
// variable for each gate. Packages cli/plan and release read the defaults.
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
