package backend

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/policy"
)

// Networks keeps the network of each LocalCluster. Errors are faults: Unreachable when the engine does not answer,
// Invalid when a person must change something.
type Networks interface {
	// NetworkTerms says what there is to know of networks before anything is read or created.
	NetworkTerms(p policy.Configuration) NetworkTerms
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
	// Terms says what there is to know of a machine before anything is read or created.
	Terms(r Request) Terms
	// Room returns what a new machine can have.
	Room(ctx context.Context, spec MachineSpec) (Room, error)
	// Create makes the machine exist, run and be as the spec says, at whatever point an earlier attempt ended. The
	// returned notes are for the user: what the host refuses, though the machine runs.
	Create(ctx context.Context, spec MachineSpec) (notes []string, err error)
	// Inspect returns the machine; its State is Absent when there is none of that name, and Foreign when what has
	// the name belongs to something else.
	Inspect(ctx context.Context, ref Ref) (Machine, error)
	// Delete removes the machine and its data. A machine that does not exist is no error.
	Delete(ctx context.Context, ref Ref) error
}

// Scripts runs bootstrap data in machines, where that is what makes them nodes ([Terms.Scripted]).
type Scripts interface {
	// Bootstrap runs the script in the machine, once in its life whatever the number of calls, and does not wait
	// for its end.
	Bootstrap(ctx context.Context, ref Ref, script Script) error
	// Progress returns how far Bootstrap has come. The machine must be running.
	Progress(ctx context.Context, ref Ref) (Progress, error)
}

// Watcher tells about changes on the host.
type Watcher interface {
	// Watch calls handle for every change until the context ends. After every gap (at the start, when the engine
	// stops or starts to answer) it says that everything may have changed.
	Watch(ctx context.Context, handle func(Event)) error
}

// Sweeper removes what no object owns any more.
type Sweeper interface {
	// Sweep removes what was created for machines and networks and is not to be kept. It continues after an error and
	// returns all of them.
	Sweep(ctx context.Context, keep Keep) error
}

// Keep says for the owner of a machine or of a network whether what was created for it stays.
type Keep struct{ Machine, Network func(Owner) bool }

// Event says what something changed about. All empty: anything may have changed.
type Event struct {
	// Machine is a LocalMachine.
	Machine types.NamespacedName
	// Network is the name of a network.
	Network string
	// Balancer is the LocalCluster whose load balancer ended.
	Balancer types.NamespacedName
	// Cluster is a Cluster all of whose machines may have changed.
	Cluster types.NamespacedName
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
	// Internet asks for a way out of the host.
	Internet bool
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
	// Internet tells that there is a way out of the host.
	Internet bool
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
	// Name of the machine, from [MachineName].
	Name string
	// Hostname, which becomes the name of the Node.
	Hostname string
	// ProviderID and Zone (the failure domain; may be empty) of the Node, and the Kubernetes version asked for.
	ProviderID, Zone, Version string
	// ControlPlane tells that the node runs a control plane.
	ControlPlane bool
	// Ran tells that the machine was provisioned before, in this management cluster or in the one that it comes from.
	Ran bool
	// Policy is what the operator allows.
	Policy policy.Configuration
	// Endpoint of the cluster, host and port; empty while there is none.
	Endpoint string
	// Files returns those in the machine's bootstrap data, by their paths. They may hold secrets.
	Files func(ctx context.Context) (map[string][]byte, error)
	// Startup is how long the machine is to take to start, where the backend can choose.
	Startup time.Duration
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
func (s State) Exists() bool { return s != "" && s != Absent && s != Orphaned && s != Foreign }

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
	// Orphaned is what is left of a machine that does not exist: its data, its place among those that count. Delete
	// removes it.
	Orphaned State = "Orphaned"
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
	// NodeVersion is the Kubernetes version of the node, empty if the backend does not know.
	NodeVersion string
	// Since is when the state began; zero where the backend does not keep it.
	Since time.Time
	// Degraded tells that something is wrong with the machine on purpose.
	Degraded bool
	// Faults are what is wrong with the control plane on it on purpose, as it was asked for.
	Faults string
	// Pending is what Create would change about a machine that runs, as a reason; empty: nothing.
	Pending string
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
	// machine has to be recreated.
	Interrupted Phase = "Interrupted"
)

// Traces that the script of a bootstrap leaves in the machine: StageFile has what it waits for or runs now, FailedFile the commands
// that failed, one a line.
const (
	StageFile  = "/run/slipway/bootstrap.stage"
	FailedFile = "/run/slipway/bootstrap.failed"
)

// What a script waits for before it carries out bootstrap data.
const (
	StageBoot       = "boot"
	StageContainerd = "containerd"
)

// Command of bootstrap data.
type Command struct {
	// Section of the cloud-config, and place in its list; below 0: not known.
	Section string
	Index   int
	// Program is the name of what it runs, without arguments; empty: not known.
	Program string
	// Code with which it ended.
	Code int
}

// String names the command as its author finds it.
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
	// Waiting is what the script waits for, or waited for when it was ended: StageBoot, StageContainerd, or nothing.
	Waiting string
	// Running is the command that it runs, or ran when it was ended; nil: not known.
	Running *Command
	// Ran tells that all commands of the last section have run.
	Ran bool
	// TimedOut tells that the script was ended because its time was over.
	TimedOut bool
	// Failed are the first commands that ended with another code than 0. They need not be why the script failed.
	Failed []Command
	// Skipped is what the bootstrap data asks for and the machine cannot carry out.
	Skipped []string
	// Log holds the last lines of a failed script's output, secrets masked.
	Log string
	// Kubelet is why the kubelet of a node ended last, while it becomes one or where it did not; empty: it has not, as far as is known.
	Kubelet string
	// APIServer is why the kube-apiserver of a node whose bootstrap has failed ended last; empty: it has not, as far as is known.
	APIServer string
}
