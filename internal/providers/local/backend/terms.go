package backend

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
)

// Request is the machine that a LocalMachine asks for.
type Request struct {
	Object *infrav1.LocalMachine
	// Name of the machine.
	Name string
	// Version of Kubernetes; empty: any.
	Version string
	// ControlPlane tells that the node is to run a control plane.
	ControlPlane bool
	// Policy is what the operator allows.
	Policy policy.Configuration
}

// Terms are facts about the machine that is asked for: what its backend, its spec and the operator say, whatever there is
// already. Decisions know backends by them alone.
type Terms struct {
	// Volatile machines live in the memory of a workload cluster's control plane: while it is unreachable there is
	// nothing of them, and one that was lost with it is created again. They are many, so that no events tell of them.
	Volatile bool
	// Immediate verbs have taken effect when they return; of others an event tells.
	Immediate bool
	// Scripted machines become nodes by running bootstrap data; others come up as nodes.
	Scripted bool
	// Networked machines need the network of their LocalCluster.
	Networked bool
	// Image that the machine is made from, ImageVersion the Kubernetes version that is known to be in it; may be empty.
	Image, ImageVersion string
	// Unclear is what the spec has to say first, Denied what of it the operator does not allow; empty: nothing.
	Unclear, Denied string
	// Mounts as they are asked for.
	Mounts []Mount
	// Resources that are asked for, else the most that is allowed.
	Resources Resources
	// Capacity of the node; nil: that of the host, within Resources.
	Capacity corev1.ResourceList
	// Startup is how long the machine takes to start, Timeout how long its bootstrap may take.
	Startup, Timeout time.Duration
	// ChangesAfter is how long after its start the machine changes by itself; zero: it does not.
	ChangesAfter time.Duration
	// Running is the machine once it has started, where that is known beforehand.
	Running Machine
	// Maximum is how many machines there may be, by the setting of that name.
	Maximum policy.Maximum
	Setting string
	// ReachesEtcd tells that the member of etcd of a control plane is reached through its machine.
	ReachesEtcd bool
	// Restart is the command for a person that starts a machine which has stopped.
	Restart string
}

// Room is what a new machine can have.
type Room struct {
	// Own and All are how many other machines there are, in the namespace and in all.
	Own, All int
	// Mounts are those of the spec where they lead.
	Mounts []Mount
	// Refused is why the machine cannot be created as it is asked for; nil: it can.
	Refused *fault.Fault
}

// RoomFor returns what a machine can have beside those of the list; resolve tells where a mount leads.
func RoomFor(spec MachineSpec, list []Machine, resolve func(hostPath string) (string, error)) (room Room, err error) {
	room.Own, room.All = CountMachines(list, spec.Owner.Object.Namespace)
	for _, m := range spec.Mounts {
		if m.HostPath, err = resolve(m.HostPath); err != nil {
			if room.Refused = fault.As(err); room.Refused != nil {
				err = nil
			}
			return room, err
		}
		room.Mounts = append(room.Mounts, m)
	}
	return room, nil
}

// CountMachines counts the machines in a namespace and in all.
func CountMachines(list []Machine, namespace string) (own, all int) {
	for _, m := range list {
		if m.Owner.Object.Namespace == namespace {
			own++
		}
	}
	return own, len(list)
}

// NetworkTerms are facts about the networks of a backend.
type NetworkTerms struct {
	// None tells that its clusters have no network.
	None bool
	// Denied is why the operator does not allow such clusters; empty: they are allowed.
	Denied string
}
