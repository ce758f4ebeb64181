package simulated

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// machinesSuffix ends the names of control planes that run on Machines. No object name can contain it. Names are also
// the names of state files, so they must not change.
const machinesSuffix = "_machines"

// MachineControlPlaneName returns the name in [Server] of the control plane of a Cluster whose control plane runs on
// simulated Machines (internal/local/simulated). No HostedControlPlane can have this name.
func MachineControlPlaneName(cluster types.NamespacedName) string {
	return cluster.Namespace + "." + cluster.Name + machinesSuffix
}

// RunsOnMachines reports whether the control plane with this name runs on Machines. The backend of simulated
// HostedControlPlanes ignores those.
func RunsOnMachines(name string) bool { return strings.HasSuffix(name, machinesSuffix) }
