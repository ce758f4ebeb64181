package simulated

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// machinesSuffix ends the names of control planes that run on machines. No object can have a name with it.
const machinesSuffix = "_machines"

// OnMachines is the name of the control plane of a Cluster whose control plane runs on machines. No HostedControlPlane has it.
func OnMachines(cluster types.NamespacedName) string {
	return cluster.Namespace + "." + cluster.Name + machinesSuffix
}

// RunsOnMachines reports whether the control plane of this name runs on machines.
func RunsOnMachines(name string) bool { return strings.HasSuffix(name, machinesSuffix) }
