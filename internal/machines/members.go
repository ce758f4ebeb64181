package machines

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// OwnedMachine is a Machine of an owner (a MachineSet or a control plane), together with changes by this process that
// the cache may not show yet. The controllers of the owners create it when they read their Machines.
type OwnedMachine struct {
	*clusterv1.Machine
	// Deleted is set if the Machine is being deleted.
	Deleted bool
	// Stale is set if the cache does not show this process's last write to the Machine.
	Stale bool
}

// OwnedMachines are the Machines of one owner, sorted by name. The MachineSet and KubeadmControlPlane controllers read
// them in each reconciliation.
type OwnedMachines []OwnedMachine

// Named returns the Machine with this name, or an OwnedMachine without a Machine. [MachineWriter] and the owners'
// controllers find the Machine of an action by it.
func (ms OwnedMachines) Named(name string) OwnedMachine {
	for _, m := range ms {
		if m.Machine != nil && m.Name == name {
			return m
		}
	}
	return OwnedMachine{}
}

// Held returns a message with the foreign finalizers that block the deletion of Machines; see
// [condition.ForeignFinalizersText]. The owners' controllers append it to the message of a wait.
func (ms OwnedMachines) Held() string {
	objects := make([]metav1.Object, 0, len(ms))
	for _, m := range ms {
		objects = append(objects, m.Machine)
	}
	return condition.ForeignFinalizersText(clusterv1.GroupVersion.WithKind("Machine").GroupKind(), objects...)
}

// Machines returns the Machines of the members. The owners' controllers convert them for the functions of [List].
func (ms OwnedMachines) Machines() []*clusterv1.Machine {
	out := make([]*clusterv1.Machine, 0, len(ms))
	for _, m := range ms {
		out = append(out, m.Machine)
	}
	return out
}
