package backend

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
)

// MachineRequest describes the machine that a LocalMachine requests. The LocalMachine controller and
// [CapacityCalculator] fill it in for [Machines].
type MachineRequest struct {
	Object *infrav1.LocalMachine
	// Name of the machine.
	Name string
	// Version of Kubernetes; empty: any.
	Version string
	// ControlPlane is set if the node runs a control plane.
	ControlPlane bool
	// Policy is the operator's configuration.
	Policy policy.Configuration
}

// Capabilities are the properties of a requested machine that follow from its backend, its spec and the operator's
// configuration, regardless of the machines that exist. The LocalMachine controller reads them in each reconciliation.
// Decisions distinguish backends only by them.
type Capabilities struct {
	// Volatile machines exist in the memory of a workload cluster's control plane. While it is unreachable they cannot
	// be observed, and machines that are lost with it are created again. Because they are numerous, no events are
	// emitted for them.
	Volatile bool
	// Immediate operations have taken effect when they return. The Watcher reports the effect of others.
	Immediate bool
	// Scripted machines become nodes by running bootstrap data; others start as nodes.
	Scripted bool
	// Networked machines need the network of their LocalCluster.
	Networked bool
	// Image of the machine, and the Kubernetes version that the image is known to contain. Both may be empty.
	Image, ImageVersion string
	// MissingSetting describes a setting that the spec lacks, Denied a setting that the operator does not allow. Empty:
	// none.
	MissingSetting, Denied string
	// Mounts as requested by the spec.
	Mounts []Mount
	// Resources that the spec requests, else the maximum that the operator allows.
	Resources Resources
	// Capacity of the node. Nil: the host's capacity, limited by Resources.
	Capacity corev1.ResourceList
	// Startup is the duration of the machine's start, Timeout the limit for its bootstrap.
	Startup, Timeout time.Duration
	// ChangesAfter is the time after its start at which the machine changes by itself. Zero: never.
	ChangesAfter time.Duration
	// Running is the state of the started machine, if it is known in advance.
	Running Machine
	// Maximum limits the number of machines, Setting is the name of that limit in the operator's configuration.
	Maximum        policy.Maximum
	MaximumSetting string
	// ReachesEtcd is set if etcd members of control planes are reached through their machines.
	ReachesEtcd bool
	// Restart is the command by which a user starts a stopped machine.
	Restart string
}

// Quota contains the number of existing machines and the resolved mounts for a new machine. CheckQuota of a backend
// returns it, and the LocalMachine controller decides with it whether to create a machine.
type Quota struct {
	// Own and All are the numbers of other machines, in the namespace and in total.
	Own, All int
	// Mounts of the spec with resolved host paths.
	Mounts []Mount
	// HostView is the backend's reading of the host, which Create uses instead of reading the host again. Nil: none.
	HostView any
	// Refusal is the reason why the machine cannot be created as requested. Nil: it can.
	Refusal *fault.Fault
}

// QuotaFor returns the Quota for a machine in addition to the machines in list, for implementations of [Machines].
// resolve returns the target of a mount path. The container backend calls it.
func QuotaFor(spec MachineSpec, list []Machine, resolve func(hostPath string) (string, error)) (room Quota, err error) {
	room.Own, room.All = CountMachines(list, spec.Owner.Object.Namespace)
	for _, m := range spec.Mounts {
		if m.HostPath, err = resolve(m.HostPath); err != nil {
			if room.Refusal = fault.As(err); room.Refusal != nil {
				err = nil
			}
			return room, err
		}
		room.Mounts = append(room.Mounts, m)
	}
	return room, nil
}

// CountMachines counts the machines in the namespace and in total. The container backend calls it again right before it
// creates a machine.
func CountMachines(list []Machine, namespace string) (own, all int) {
	for _, m := range list {
		if m.Owner.Object.Namespace == namespace {
			own++
		}
	}
	return own, len(list)
}

// NetworkCapabilities are the properties of the networks of a backend.
type NetworkCapabilities struct {
	// NoNetwork is set if its clusters have no network.
	NoNetwork bool
	// Denied is the reason why the operator does not allow such clusters. Empty: they are allowed.
	Denied string
}
