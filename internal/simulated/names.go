package simulated

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// machinesSuffix ends the names of control planes that run on Machines. No object name can contain it.
const machinesSuffix = "_machines"

// MachineControlPlaneName returns the name of the control plane of a Cluster whose control plane runs on Machines. No
// HostedControlPlane can have this name.
func MachineControlPlaneName(cluster types.NamespacedName) string {
	return cluster.Namespace + "." + cluster.Name + machinesSuffix
}

// RunsOnMachines reports whether the control plane with this name runs on Machines.
func RunsOnMachines(name string) bool { return strings.HasSuffix(name, machinesSuffix) }
