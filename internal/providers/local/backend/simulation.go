package backend

import (
	"context"
	"hash/fnv"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Simulation keeps the Nodes of simulated machines in workload clusters. A cluster is named by its Cluster; all verbs
// fail with a fault of kind Unreachable while its control plane is not simulated, or does not run.
type Simulation interface {
	// Inspect returns what is known of a machine.
	Inspect(ctx context.Context, cluster types.NamespacedName, name string) (SimulatedMachine, error)
	// Boot notes that a machine begins to start.
	Boot(ctx context.Context, cluster types.NamespacedName, node SimulatedNode) error
	// Join makes the Node of a machine, with a kubelet that is well.
	Join(ctx context.Context, cluster types.NamespacedName, node SimulatedNode) error
	// SetReady makes the kubelet of a machine well or not.
	SetReady(ctx context.Context, cluster types.NamespacedName, name string, ready bool) error
	// Remove ends a machine. Its Node stays, as that of a machine that is switched off, until somebody deletes it.
	// A machine or a cluster that does not exist is no error.
	Remove(ctx context.Context, cluster types.NamespacedName, name string) error
	// Subscribe calls tell for each cluster whose control plane starts, or changes otherwise, until cancel is called.
	Subscribe(tell func(cluster types.NamespacedName)) (cancel func())
}

// SimulatedMachine is a simulated machine as it is.
type SimulatedMachine struct {
	// Owner is the UID of the LocalMachine that it was made for.
	Owner types.UID
	// Booted is when it began to start; zero: it did not.
	Booted time.Time
	// Joined tells that its Node was made, whether it is there or not.
	Joined bool
	// Since is when.
	Since time.Time
	// NotReady tells that its kubelet is not well.
	NotReady bool
}

// SimulatedNode is the Node that a LocalMachine asks for.
type SimulatedNode struct {
	// Owner is the UID of the LocalMachine.
	Owner types.UID
	// Name of the Node.
	Name       string
	ProviderID string
	// Version of its kubelet; empty: that of the control plane.
	Version string
	// Zone is its failure domain; may be empty.
	Zone string
	// Address of the Node.
	Address netip.Addr
	// At is when it boots, or joins.
	At time.Time
}

// SimulatedCapacity is what every simulated node offers: 8 CPUs, 16 GiB of memory, 100 GiB of disk, 110 Pods.
func SimulatedCapacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
}

// SimulatedAddress returns the address of a Node, the same on every call. It is in 100.64.0.0/10, which nobody routes.
func SimulatedAddress(machineName string) netip.Addr {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(machineName)) // never fails
	n := sum.Sum32()
	return netip.AddrFrom4([4]byte{100, 64 | byte(n>>16)&0x3f, byte(n >> 8), byte(n)})
}
