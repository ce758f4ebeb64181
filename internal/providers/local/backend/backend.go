package backend

import (
	"context"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/policy"
)

// Networks keeps one network per LocalCluster. Errors are faults: Unreachable when the engine does not answer,
// Invalid when a person must change something.
type Networks interface {
	// EnsureNetwork makes the network exist and returns it. A network of the LocalCluster that exists is returned as
	// it is.
	EnsureNetwork(ctx context.Context, spec NetworkSpec) (Network, error)
	// FindNetwork returns the network that belongs to a LocalCluster by its labels, and false when there is none.
	FindNetwork(ctx context.Context, ref Ref) (Network, bool, error)
	// DeleteNetwork removes the network that belongs to a LocalCluster. That there is none is no error.
	DeleteNetwork(ctx context.Context, ref Ref) error
	// TakenRanges returns what the host and its networks use.
	TakenRanges(ctx context.Context) ([]Taken, error)
}

// Machines runs nodes. Every verb looks the machine up, and does nothing to one that does not belong to the object.
type Machines interface {
	// Create makes the machine exist and run, at whatever point an earlier attempt ended. The returned notes are
	// for the user: what the host refuses, though the machine runs.
	Create(ctx context.Context, spec MachineSpec) (notes []string, err error)
	// Inspect returns the machine; its State is Absent when there is none of that name, and Foreign when what has
	// the name belongs to something else.
	Inspect(ctx context.Context, ref Ref) (Machine, error)
	// Delete removes the machine and its data. A machine that does not exist is no error.
	Delete(ctx context.Context, ref Ref) error
	// Bootstrap runs the script in the machine, once in its life whatever the number of calls, and does not wait
	// for its end.
	Bootstrap(ctx context.Context, ref Ref, script Script) error
	// Progress returns how far Bootstrap has come. The machine must be running.
	Progress(ctx context.Context, ref Ref) (Progress, error)
	// List returns all machines of this instance.
	List(ctx context.Context) ([]Machine, error)
	// ResolveMount returns the path of the host that a mount would show, without symbolic links. The error is a fault
	// of kind Invalid for a path that does not exist, and for one that no node may have whoever allows it.
	ResolveMount(ctx context.Context, hostPath string) (string, error)
}

// Watcher tells about changes on the host.
type Watcher interface {
	// Watch calls handle for every change until the context ends. After every gap (at the start, when the engine
	// stops or starts to answer) it says that everything may have changed.
	Watch(ctx context.Context, handle func(Event)) error
}

// Event says that something changed on the host.
type Event struct {
	// Machine is the LocalMachine that the change is about. Empty: anything may have changed.
	Machine types.NamespacedName
	// Network is the name of the network that the change is about. Both empty: anything may have changed.
	Network string
}

// NetworkSpec is the network that a LocalCluster asks for.
type NetworkSpec struct {
	Owner Owner
	// Name of the network, from [NetworkName].
	Name string
	// Subnet asked for; invalid: choose one.
	Subnet netip.Prefix
	// Ranges of Pods and Services, which a chosen subnet holds if possible.
	Ranges []netip.Prefix
	// Policy says where a chosen subnet may lie, and how many networks there may be.
	Policy policy.Configuration
}

// Network is a network as it is.
type Network struct {
	// Name and ID in the engine.
	Name, ID string
	Subnet   netip.Prefix
	// Gateway is the address of the host in the network.
	Gateway netip.Addr
}

// Taken is a range that is in use on the host.
type Taken struct {
	Range netip.Prefix
	// By says for people what uses it.
	By string
	// Owner is the LocalCluster whose network it is; zero for everything else, and for networks of other instances.
	Owner Owner
}

// Owner is the Kubernetes object that something on the host belongs to.
type Owner struct {
	// Cluster is the Cluster's name.
	Cluster string
	// Object is the LocalCluster or LocalMachine.
	Object types.NamespacedName
	UID    types.UID
}

// MachineSpec is the machine that a LocalMachine asks for.
type MachineSpec struct {
	Owner Owner
	// Name of the container, from [MachineName].
	Name string
	// Hostname, which becomes the name of the Node.
	Hostname string
	// Network the machine is on: that of its LocalCluster.
	Network Ref
	// Image of the node, a name the engine has. It is never pulled.
	Image string
	// Ranges of Pods and Services. A node sends those that are outside of the network's subnet to the network, too.
	Ranges []netip.Prefix
	Mounts []Mount
	// Resources that the machine may use.
	Resources Resources
	// Maximum is how many machines there may be.
	Maximum policy.Maximum
}

// Resources that a machine may use. 0: no limit.
type Resources struct {
	CPUs                 int32
	MemoryMiB, Processes int64
}

// Mount is a file or folder of the host inside a machine. HostPath comes from ResolveMount.
type Mount struct {
	HostPath, MachinePath string
	ReadOnly              bool
}

// State of a machine.
type State string

// Exists reports whether there is a machine, and not just what remains of one, or another of its name. What is not known
// does not exist.
func (s State) Exists() bool { return s != "" && s != Absent && s != Remains && s != Foreign }

const (
	// Absent machines do not exist.
	Absent State = "Absent"
	// Created machines exist and were never started.
	Created State = "Created"
	// Running machines run.
	Running State = "Running"
	// Stopped machines have ended; Machine.Detail says how.
	Stopped State = "Stopped"
	// Removing machines are being deleted.
	Removing State = "Removing"
	// Remains is what somebody leaves who removes a machine without its data. Delete removes it.
	Remains State = "Remains"
	// Foreign is what has the machine's name and does not belong to its object. Nothing is done to it.
	Foreign State = "Foreign"
)

// Machine is a machine as it is.
type Machine struct {
	// Name and ID in the engine.
	Name, ID string
	Owner    Owner
	State    State
	// Detail says how a stopped machine ended.
	Detail   string
	Hostname string
	// Address in the network, invalid until the machine has been started.
	Address netip.Addr
	// NodeVersion is the Kubernetes version that the image carries, empty if it does not say.
	NodeVersion string
}

// Script is what runs inside a machine to make it a node.
type Script struct {
	// Body is a POSIX shell script. It may hold secrets.
	Body []byte
	// Sentinel is the file whose presence after the script means success.
	Sentinel string
	// Timeout after which the script is ended and has failed.
	Timeout time.Duration
}

// Phase of a bootstrap.
type Phase string

const (
	// NotStarted means that Bootstrap has to be called.
	NotStarted Phase = "NotStarted"
	// InProgress means that the script runs. The Watcher tells when it ends.
	InProgress Phase = "InProgress"
	// Succeeded means that the script ended and left its sentinel.
	Succeeded Phase = "Succeeded"
	// Failed means that the script ended without its sentinel, or ran out of time.
	Failed Phase = "Failed"
	// Unusable means that the machine runs and cannot run a script: its image is no node image.
	Unusable Phase = "Unusable"
	// Interrupted means that the machine was restarted while the script ran. What is done is unknown, so the
	// machine has to be made anew.
	Interrupted Phase = "Interrupted"
)

// Progress of a bootstrap.
type Progress struct {
	Phase Phase
	// Log holds the last lines of a failed script's output, secrets masked.
	Log string
}
