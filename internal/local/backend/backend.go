package backend

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/policy"
)

// Networks manages the network of each LocalCluster. The LocalCluster controller calls it, and package managementnode
// for the management node; packages container and simulated implement it. Errors are faults: Unreachable if the engine
// does not respond, Invalid if the user has to change something.
type Networks interface {
	// NetworkCapabilities returns the properties of networks that are known before anything is read or created.
	NetworkCapabilities(p policy.Configuration) NetworkCapabilities
	// EnsureNetwork creates the network if it does not exist, and returns it. An existing network of the LocalCluster
	// is returned unchanged.
	EnsureNetwork(ctx context.Context, spec NetworkSpec) (Network, error)
	// FindNetwork returns the network whose labels name the LocalCluster, and false if there is none.
	FindNetwork(ctx context.Context, ref Ref) (Network, bool, error)
	// DeleteNetwork removes the network of a LocalCluster. A missing network is not an error.
	DeleteNetwork(ctx context.Context, ref Ref) error
	// UsedRanges returns the address ranges that the host and its networks use.
	UsedRanges(ctx context.Context) ([]UsedRange, error)
}

// Machines runs nodes. The LocalMachine controller calls it, and package managementnode for the management node;
// packages container and simulated implement it. Every method looks up the machine first and leaves a machine of
// another object unchanged.
type Machines interface {
	// Capabilities returns the properties of a machine that are known before anything is read or created.
	Capabilities(r MachineRequest) Capabilities
	// CheckQuota returns the number of existing machines and the resolved mounts for a new machine.
	CheckQuota(ctx context.Context, spec MachineSpec) (Quota, error)
	// Create creates and starts the machine and brings it to spec, resuming where an earlier attempt ended. The notes
	// inform the user about settings that the host refuses although the machine runs.
	Create(ctx context.Context, spec MachineSpec) (notes []string, err error)
	// Inspect returns the machine. Its State is Absent if no machine has the name, and Foreign if the name is used by
	// something that does not belong to the object.
	Inspect(ctx context.Context, ref Ref) (Machine, error)
	// Delete removes the machine and its data. A missing machine is not an error.
	Delete(ctx context.Context, ref Ref) error
}

// Scripts runs bootstrap data in machines that become nodes by running it ([Capabilities.Scripted]). The LocalMachine
// controller calls it, and package managementnode for the management node.
type Scripts interface {
	// Bootstrap starts the script in the machine, at most once in the life of the machine regardless of the number of
	// calls, and does not wait for its end.
	Bootstrap(ctx context.Context, ref Ref, script Script) error
	// Progress returns the progress of the bootstrap. The machine must be running.
	Progress(ctx context.Context, ref Ref) (Progress, error)
}

// Kubelets reads the state of kubelets in running machines. The LocalMachine controller calls it while a Node is not
// ready.
type Kubelets interface {
	Kubelet(ctx context.Context, ref Ref) (KubeletState, error)
}

// Watcher reports changes on the host. The [Broadcaster] calls it once.
type Watcher interface {
	// Watch calls handle for every change until the context ends. After every gap (at startup, and when the engine
	// stops or resumes responding) it sends an event which means that everything may have changed.
	Watch(ctx context.Context, handle func(Event)) error
}

// Sweeper removes resources whose objects no longer exist. The provider (package local) calls it once when the manager
// starts.
type Sweeper interface {
	// Sweep removes the resources of all machines and networks except those in use. It continues after an error and
	// returns all errors.
	Sweep(ctx context.Context, keep InUse) error
}

// InUse reports, by owner, whether the resources of a machine or network are in use and must be retained. The sweeper
// of package local fills it in from the API objects.
type InUse struct{ Machine, Network func(Owner) bool }

// Event identifies the object that changed. If all fields are empty, anything may have changed. A [Watcher] sends it,
// and the controllers of LocalClusters and LocalMachines map it to objects ([EnqueueMapper]).
type Event struct {
	// Machine is a LocalMachine.
	Machine types.NamespacedName
	// Network is the name of a network.
	Network string
	// Balancer is the LocalCluster whose load balancer process exited.
	Balancer types.NamespacedName
	// Cluster is a Cluster of which all machines may have changed.
	Cluster types.NamespacedName
}

// NetworkSpec is the desired network of a LocalCluster. The LocalCluster controller and package managementnode fill it
// in for [Networks].
type NetworkSpec struct {
	Owner Owner
	// Name of the network, from [NetworkName].
	Name string
	// Subnet is the requested range. Invalid: choose one.
	Subnet netip.Prefix
	// Ranges are the Pod and Service CIDRs, which a chosen subnet contains if possible.
	Ranges []netip.Prefix
	// Internet requests a route out of the host.
	Internet bool
	// Policy limits the ranges to choose from and the number of networks.
	Policy policy.Configuration
}

// Network is the observed state of a network. A backend fills it in, and the LocalCluster controller decides on it.
type Network struct {
	// Name and ID in the engine.
	Name, ID string
	Subnet   netip.Prefix
	// Gateway is the address of the host in the network.
	Gateway netip.Addr
	// Internet is set if the network has a route out of the host.
	Internet bool
}

// UsedRange is an address range in use on the host. Backends report it, and [ChooseRange] avoids these ranges.
type UsedRange struct {
	Range netip.Prefix
	// By describes the user of the range, for messages.
	By string
	// Owner is the LocalCluster that owns the network of the range. Zero for everything else, including networks of
	// other instances.
	Owner Owner
}

// Owner is the Kubernetes object that owns a host resource. A backend records it in the labels of the resource
// ([Owner.Labels]), and reads it from them.
type Owner struct {
	// Cluster is the Cluster's name.
	Cluster string
	// Object is the LocalCluster or LocalMachine.
	Object types.NamespacedName
	UID    types.UID
}

// MachineSpec is the desired machine of a LocalMachine. The LocalMachine controller and package managementnode fill it
// in for [Machines].
type MachineSpec struct {
	Owner Owner
	// Name of the machine, from [MachineName].
	Name string
	// Hostname is also the name of the Node.
	Hostname string
	// ProviderID and Zone (the failure domain; may be empty) of the Node, and the requested Kubernetes version.
	ProviderID, Zone, Version string
	// ControlPlane is set if the node runs a control plane.
	ControlPlane bool
	// ProvisionedBefore is set if the machine was provisioned before, in this management cluster or in the one it was
	// moved from.
	ProvisionedBefore bool
	// Policy is the operator's configuration.
	Policy policy.Configuration
	// Endpoint is the control plane endpoint of the cluster, host and port. Empty: not known yet.
	Endpoint string
	// Files returns the files in the machine's bootstrap data by path. They may contain secrets.
	Files func(ctx context.Context) (map[string][]byte, error)
	// Startup is the duration of the machine's start, for backends that can choose it.
	Startup time.Duration
	// Network is the network of the machine's LocalCluster.
	Network Ref
	// Image is the node image. It must be present in the engine and is never pulled.
	Image string
	// Ranges are the Pod and Service CIDRs. A node routes them to the network even if they are outside of the network's
	// subnet.
	Ranges []netip.Prefix
	Mounts []Mount
	// HostView is the reading of the host from which CheckQuota computed the quota ([Quota.HostView]).
	HostView any
	// Resources that the machine may use.
	Resources Resources
	// Maximum limits the number of machines.
	Maximum policy.Maximum
}

// Resources limits the resources of a machine. 0: no limit.
type Resources struct {
	CPUs                 int32
	MemoryMiB, Processes int64
}

// Mount is a host file or directory inside a machine. CheckQuota resolves the symbolic links in HostPath. It comes from
// the spec of a LocalMachine.
type Mount struct {
	HostPath, MachinePath string
	ReadOnly              bool
}

// MachineState is the observed state of a machine. A backend reports it in [Machine], and the LocalMachine controller
// decides on it.
type MachineState string

// Exists reports whether the machine exists. A machine in an unknown state, the remains of a deleted machine and a
// foreign resource of the same name do not count. The decisions about LocalMachines call it.
func (s MachineState) Exists() bool { return s != "" && s != Absent && s != Orphaned && s != Foreign }

const (
	// Absent machines do not exist.
	Absent MachineState = "Absent"
	// Created machines exist and have never been started.
	Created MachineState = "Created"
	// Running machines run.
	Running MachineState = "Running"
	// Stopped machines have exited; Machine.Detail describes how.
	Stopped MachineState = "Stopped"
	// Removing machines are being deleted.
	Removing MachineState = "Removing"
	// Orphaned machines no longer exist, but their data or their share of the quota does. Delete removes both.
	Orphaned MachineState = "Orphaned"
	// Foreign means that the name is used by something that does not belong to the object. It is left unchanged.
	Foreign MachineState = "Foreign"
)

// Machine is the observed state of a machine.
type Machine struct {
	// Name and ID in the engine.
	Name, ID string
	Owner    Owner
	State    MachineState
	// Detail describes how a stopped machine exited.
	Detail   string
	Hostname string
	// Address in the network. Invalid until the machine has been started.
	Address netip.Addr
	// NodeVersion is the Kubernetes version of the node. Empty: unknown.
	NodeVersion string
	// Since is the time at which the state began. Zero if the backend does not record it.
	Since time.Time
	// Degraded is set if a fault was injected into the machine.
	Degraded bool
	// Faults are the faults that were injected into the control plane on the machine, as requested.
	Faults string
	// Pending is the reason why Create would change the running machine. Empty: nothing to change.
	Pending string
}

// Script turns a machine into a node. Package cloudinit renders it, and [Scripts] runs it in a machine.
type Script struct {
	// Body is a POSIX shell script. It may hold secrets.
	Body []byte
	// Sentinel is the file whose existence after the script means success.
	Sentinel string
	// Timeout after which the script is stopped and counts as failed.
	Timeout time.Duration
}

// Phase of a bootstrap. A backend reports it, and the LocalMachine controller decides on it.
type Phase string

const (
	// NotStarted means that Bootstrap has to be called.
	NotStarted Phase = "NotStarted"
	// InProgress means that the script runs. The Watcher reports its end.
	InProgress Phase = "InProgress"
	// Succeeded means that the script ended and created its sentinel.
	Succeeded Phase = "Succeeded"
	// Failed means that the script ended without its sentinel, or ran out of time.
	Failed Phase = "Failed"
	// Unusable means that the machine runs but cannot run a script, because its image is not a node image.
	Unusable Phase = "Unusable"
	// Interrupted means that the machine was restarted while the script ran. Because the completed steps are unknown,
	// the machine has to be recreated.
	Interrupted Phase = "Interrupted"
)

// Files that the bootstrap script writes in the machine: StageFile contains the stage that the script waits for or the
// command that it runs, FailedFile the failed commands, one per line. Package cloudinit renders the script, and package
// container reads the files.
const (
	StageFile  = "/run/slipway/bootstrap.stage"
	FailedFile = "/run/slipway/bootstrap.failed"
)

// Stages that the script waits for before it runs bootstrap data.
const (
	StageBoot       = "boot"
	StageContainerd = "containerd"
)

// Command identifies a command of the bootstrap data. The bootstrap script records it, a backend parses it, and
// conditions of LocalMachines show it.
type Command struct {
	// Section of the cloud-config, and the Index in its list. Below 0: unknown.
	Section string
	Index   int
	// Program is the name of the executable, without arguments. Empty: unknown.
	Program string
	// Code is the exit code.
	Code int
}

// String returns the command's position in the cloud-config and its program, such as "runcmd[1] (kubeadm)".
func (c Command) String() string {
	text := c.Section
	if c.Index >= 0 {
		text += fmt.Sprintf("[%d]", c.Index)
	}
	if c.Program != "" {
		text += " (" + c.Program + ")"
	}
	return text
}

// Progress of a bootstrap.
type Progress struct {
	Phase Phase
	// WaitingFor is the stage that the script waits for, or waited for when it was stopped: StageBoot, StageContainerd or
	// empty.
	WaitingFor string
	// Running is the command that runs, or ran when the script was stopped. Nil: unknown.
	Running *Command
	// Completed is set if all commands of the last section have run.
	Completed bool
	// TimedOut is set if the script was stopped at its timeout.
	TimedOut bool
	// Failed lists the first commands with a non-zero exit code. They are not necessarily the cause of a failed script.
	Failed []Command
	// Skipped lists the parts of the bootstrap data that the machine cannot apply.
	Skipped []string
	// Log contains the last lines of a failed script's output, with secrets masked.
	Log string
	// Kubelet is the reason for the last exit of the kubelet, during the bootstrap or after it failed. Empty: no exit
	// is known.
	Kubelet string
	// APIServer is the reason for the last exit of the kube-apiserver, after the bootstrap failed. Empty: no exit is
	// known.
	APIServer string
}
