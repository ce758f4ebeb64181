package v1alpha1

import "time"

// LocalClusterBackend chooses what a LocalCluster is made of. Exactly one member is set.
// +kubebuilder:validation:ExactlyOneOf=container;simulated
type LocalClusterBackend struct {
	// container makes the cluster's network a network of the container engine on this host.
	// +optional
	Container *ContainerCluster `json:"container,omitempty"`

	// simulated makes nothing at all: the machines of the cluster are simulated too, and its control plane is a
	// HostedControlPlane whose backend is simulated.
	// +optional
	Simulated *SimulatedCluster `json:"simulated,omitempty"`
}

// SimulatedCluster is what the simulated backend needs to know about a cluster.
type SimulatedCluster struct{}

// ContainerCluster is what the container backend needs to know about a cluster.
type ContainerCluster struct {
	// network is the network that all nodes of the cluster share.
	// +optional
	Network ContainerNetwork `json:"network,omitempty,omitzero"`
}

// ContainerNetwork describes the network of one cluster, which is internal to the host unless it asks for more.
// +kubebuilder:validation:MinProperties=1
type ContainerNetwork struct {
	// subnet is the IPv4 range of the network in CIDR notation, for example 172.31.0.0/16. Nodes, Pods and Services
	// take their addresses from it, so that no traffic of the cluster leaves this host by mistake; it must hold at
	// least 4096 addresses (/20). When unset, a free range is chosen, and status.network.subnet tells which.
	// Cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self) == cidr(self).masked()",message="must be an IPv4 network in CIDR notation with no host bits set, for example 172.31.0.0/16"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || (cidr(self).prefixLength() >= 8 && cidr(self).prefixLength() <= 20)",message="must be between /8 and /20: nodes, Pods and Services share it"
	Subnet string `json:"subnet,omitempty"`

	// internet gives nodes and Pods a way out of this host: the network is not internal, and what leaves it has the
	// host's address. They then reach whatever the host reaches. The operator of the management cluster says in which
	// namespaces that may be asked for (networks.internet in the configuration file); unless told so, in none.
	// Cannot be changed. Defaults to false.
	// +optional
	Internet bool `json:"internet,omitempty"`
}

// LocalMachineBackend chooses what a machine is made of. Exactly one member is set.
// +kubebuilder:validation:ExactlyOneOf=container;simulated
type LocalMachineBackend struct {
	// container makes the machine a container that runs systemd, containerd and the kubelet.
	// +optional
	Container *ContainerMachine `json:"container,omitempty"`

	// simulated makes the machine a Node in the workload cluster with nothing behind it. The control plane of the
	// cluster has to be simulated too.
	// +optional
	Simulated *SimulatedMachine `json:"simulated,omitempty"`
}

// SimulatedMachine is what the simulated backend needs to know about a machine.
type SimulatedMachine struct {
	// startupDelay is how long the machine takes to start, from the moment its bootstrap data is there until its Node
	// appears: a duration with its unit, for example 90s or 1m30s. Defaults to 0s.
	// +optional
	StartupDelay Duration `json:"startupDelay,omitempty"`

	// jitter is how much longer than startupDelay a machine may take; each takes another part of it, which is always
	// the same for the same machine: a duration with its unit, for example 5s. Defaults to 0s.
	// +optional
	Jitter Duration `json:"jitter,omitempty"`
}

// Duration is a length of time with its unit, for example 500ms, 90s or 1m30s.
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ms|s|m|h))+$`
type Duration string

// Length returns the duration; zero where it is empty or cannot be read.
func (d Duration) Length() time.Duration {
	length, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return length
}

// Annotations that make something go wrong with simulated machines and clusters, on purpose. Durations have a unit, for
// example 500ms, 30s or 5m; a machine with a value that cannot be read is not ready, and says so.
const (
	// NeverBootsAnnotation on a LocalMachine, with any value but "false", keeps its Node from appearing for as long as
	// the annotation is there.
	NeverBootsAnnotation = "simulated.infrastructure.slipway.dev/never-boots"

	// NotReadyAfterAnnotation on a LocalMachine makes its Node NotReady this long after the Node was created. Without
	// the annotation it becomes Ready again.
	NotReadyAfterAnnotation = "simulated.infrastructure.slipway.dev/not-ready-after"

	// ControlPlaneFaultsAnnotation on a LocalMachine that runs a control plane says what is wrong with it, for as long as the
	// annotation is there: etcd-down, etcd-learner, etcd-alarm=NOSPACE, etcd-alarm=CORRUPT, etcd-delay=3s (its disk is slow),
	// pod-down=kube-apiserver (or another static Pod: kube-controller-manager, kube-scheduler, etcd). Several are separated by
	// commas.
	ControlPlaneFaultsAnnotation = "simulated.infrastructure.slipway.dev/control-plane-faults"

	// NeverProvisionsAnnotation on a LocalCluster, with any value but "false", keeps it from being provisioned for as
	// long as the annotation is there.
	NeverProvisionsAnnotation = "simulated.infrastructure.slipway.dev/never-provisions"
)

// ContainerMachine is what the container backend needs to know about a machine.
type ContainerMachine struct {
	// image is the node image, a name that the container engine of this host has; it is never pulled. Images in
	// kind's node layout work, if the operator of the management cluster allows them (nodes.images in the
	// configuration file). When unset, the image that `slipway image build` makes for the Kubernetes version of the
	// Machine is used.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// extraMounts are folders or files of this host that appear inside the node. The operator of the management
	// cluster says which ones may (nodes.mounts in the configuration file); unless told so, none may.
	// +optional
	// +listType=map
	// +listMapKey=containerPath
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ExtraMounts []Mount `json:"extraMounts,omitempty"`

	// resources are the most that the node may use, with all of its Pods. What is unset is what the operator of the
	// management cluster allows a node (nodes in the configuration file); no more than that can be asked for.
	// +optional
	Resources ContainerResources `json:"resources,omitempty,omitzero"`

	// bootstrapTimeoutSeconds is how long, in seconds, the bootstrap data may run inside the node before the machine
	// counts as failed. Defaults to 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	BootstrapTimeoutSeconds int32 `json:"bootstrapTimeoutSeconds,omitempty"`
}

// ContainerResources are the most that a node may use.
// +kubebuilder:validation:MinProperties=1
type ContainerResources struct {
	// cpus is how many processors' time the node may use.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	CPUs int32 `json:"cpus,omitempty"`

	// memoryMiB is how much memory the node may use, in MiB. It has no swap space besides.
	// +optional
	// +kubebuilder:validation:Minimum=256
	// +kubebuilder:validation:Maximum=67108864
	MemoryMiB int64 `json:"memoryMiB,omitempty"`

	// processes is how many processes and threads may run in the node at the same time.
	// +optional
	// +kubebuilder:validation:Minimum=512
	// +kubebuilder:validation:Maximum=4194304
	Processes int64 `json:"processes,omitempty"`
}

// Mount is one folder or file of the host that is visible inside a node.
type Mount struct {
	// hostPath is the absolute path on this host. It must exist, and be allowed as it stands here and as it leads
	// where there are symbolic links in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^/`
	HostPath string `json:"hostPath,omitempty"`

	// containerPath is the absolute path inside the node.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^/`
	ContainerPath string `json:"containerPath,omitempty"`

	// readOnly keeps the node from writing to the mount. Defaults to false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}

// Names of backends, as the members of spec.backend are called.
const (
	ContainerBackend = "container"
	SimulatedBackend = "simulated"
)

// Name returns which backend is chosen.
func (b LocalClusterBackend) Name() string { return backendName(b.Simulated != nil) }

// Name returns which backend is chosen.
func (b LocalMachineBackend) Name() string { return backendName(b.Simulated != nil) }

func backendName(simulated bool) string {
	if simulated {
		return SimulatedBackend
	}
	return ContainerBackend
}
