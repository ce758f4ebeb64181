package v1alpha1

import "time"

// LocalClusterBackend selects the implementation of a LocalCluster. Exactly one member must be set.
// +kubebuilder:validation:ExactlyOneOf=container;simulated
type LocalClusterBackend struct {
	// container creates the cluster's network in the container engine on this host.
	// +optional
	Container *ContainerCluster `json:"container,omitempty"`

	// simulated creates nothing: the machines of the cluster are simulated too, and its control plane is a
	// HostedControlPlane with the simulated backend.
	// +optional
	Simulated *SimulatedCluster `json:"simulated,omitempty"`
}

// SimulatedCluster configures the simulated backend for a cluster.
type SimulatedCluster struct{}

// ContainerCluster configures the container backend for a cluster.
type ContainerCluster struct {
	// network is the network shared by all nodes of the cluster.
	// +optional
	Network ContainerNetwork `json:"network,omitempty,omitzero"`
}

// ContainerNetwork configures the network of one cluster. By default, it is internal to the host.
// +kubebuilder:validation:MinProperties=1
type ContainerNetwork struct {
	// subnet is the IPv4 range of the network in CIDR notation, for example 172.31.0.0/16. Nodes, Pods and Services get
	// their addresses from it, so that traffic of the cluster cannot leave this host by mistake. It must contain at
	// least 4096 addresses (/20). If unset, an unused range is selected and reported in status.network.subnet. Cannot
	// be changed.
	// +optional
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self) == cidr(self).masked()",message="must be an IPv4 network in CIDR notation with no host bits set, for example 172.31.0.0/16"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || (cidr(self).prefixLength() >= 8 && cidr(self).prefixLength() <= 20)",message="must be between /8 and /20: nodes, Pods and Services share it"
	Subnet string `json:"subnet,omitempty"`

	// internet gives nodes and Pods access to networks outside of this host: the network is not internal, and outgoing
	// traffic has the address of the host. They can then reach everything that the host can reach. The operator of the
	// management cluster configures the namespaces in which this is allowed (networks.internet in the configuration
	// file); by default in none. Cannot be changed. Defaults to false.
	// +optional
	Internet bool `json:"internet,omitempty"`
}

// LocalMachineBackend selects the implementation of a machine. Exactly one member must be set.
// +kubebuilder:validation:ExactlyOneOf=container;simulated
type LocalMachineBackend struct {
	// container runs the machine as a container with systemd, containerd and the kubelet.
	// +optional
	Container *ContainerMachine `json:"container,omitempty"`

	// simulated creates a Node in the workload cluster without an actual machine. The control plane of the cluster must
	// be simulated too.
	// +optional
	Simulated *SimulatedMachine `json:"simulated,omitempty"`
}

// SimulatedMachine configures the simulated backend for a machine.
type SimulatedMachine struct {
	// startupDelay is the time from when the bootstrap data is available until the Node is created: a duration with its
	// unit, for example 90s or 1m30s. Defaults to 0s.
	// +optional
	StartupDelay Duration `json:"startupDelay,omitempty"`

	// jitter is the maximum additional delay. Each machine uses a different part of it, which is always the same for
	// the same machine: a duration with its unit, for example 5s. Defaults to 0s.
	// +optional
	Jitter Duration `json:"jitter,omitempty"`
}

// Duration is a duration with its unit, for example 500ms, 90s or 1m30s.
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ms|s|m|h))+$`
type Duration string

// Value returns the duration; zero if it is empty or invalid.
func (d Duration) Value() time.Duration {
	length, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return length
}

// Annotations that inject faults into simulated machines and clusters. Durations have a unit, for example 500ms, 30s or
// 5m. A machine with an invalid value is not ready, and reports the problem.
const (
	// NeverBootsAnnotation on a LocalMachine, with any value but "false", prevents the creation of its Node while the
	// annotation is present.
	NeverBootsAnnotation = "simulated.infrastructure.slipway.dev/never-boots"

	// NotReadyAfterAnnotation on a LocalMachine makes its Node NotReady after this time since the creation of the Node.
	// When the annotation is removed, the Node becomes Ready again.
	NotReadyAfterAnnotation = "simulated.infrastructure.slipway.dev/not-ready-after"

	// ControlPlaneFaultsAnnotation on a LocalMachine of a control plane lists faults that are present while the
	// annotation is: etcd-down, etcd-learner, etcd-alarm=NOSPACE, etcd-alarm=CORRUPT, etcd-delay=3s (slow disk),
	// pod-down=kube-apiserver (or another static Pod: kube-controller-manager, kube-scheduler, etcd). Several faults
	// are separated by commas.
	ControlPlaneFaultsAnnotation = "simulated.infrastructure.slipway.dev/control-plane-faults"

	// NeverProvisionsAnnotation on a LocalCluster, with any value but "false", prevents its provisioning while the
	// annotation is present.
	NeverProvisionsAnnotation = "simulated.infrastructure.slipway.dev/never-provisions"
)

// ContainerMachine configures the container backend for a machine.
type ContainerMachine struct {
	// image is the node image, which must exist in the container engine on this host; it is never pulled. Images with
	// the node layout of kind are supported, if the operator of the management cluster allows them (nodes.images in the
	// configuration file). Defaults to the image that `slipway image build` builds for the Kubernetes version of the
	// Machine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// extraMounts are folders or files of this host that are mounted in the node. The operator of the management
	// cluster configures which ones are allowed (nodes.mounts in the configuration file); by default none.
	// +optional
	// +listType=map
	// +listMapKey=containerPath
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ExtraMounts []Mount `json:"extraMounts,omitempty"`

	// resources are the resource limits of the node with all of its Pods. Unset values default to the limits that the
	// operator of the management cluster configures for a node (nodes in the configuration file), which cannot be
	// exceeded.
	// +optional
	Resources ContainerResources `json:"resources,omitempty,omitzero"`

	// bootstrapTimeoutSeconds is the timeout in seconds for the bootstrap data to run in the node. After it, the
	// machine is considered failed. Defaults to 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	BootstrapTimeoutSeconds int32 `json:"bootstrapTimeoutSeconds,omitempty"`
}

// ContainerResources are the resource limits of a node.
// +kubebuilder:validation:MinProperties=1
type ContainerResources struct {
	// cpus is the maximum number of CPUs whose time the node may use.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	CPUs int32 `json:"cpus,omitempty"`

	// memoryMiB is the maximum memory that the node may use, in MiB. It has no additional swap space.
	// +optional
	// +kubebuilder:validation:Minimum=256
	// +kubebuilder:validation:Maximum=67108864
	MemoryMiB int64 `json:"memoryMiB,omitempty"`

	// processes is the maximum number of processes and threads in the node.
	// +optional
	// +kubebuilder:validation:Minimum=512
	// +kubebuilder:validation:Maximum=4194304
	Processes int64 `json:"processes,omitempty"`
}

// Mount is a folder or file of the host that is mounted in a node.
type Mount struct {
	// hostPath is the absolute path on this host. It must exist. If it contains symbolic links, both the path itself
	// and the resolved path must be allowed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^/`
	HostPath string `json:"hostPath,omitempty"`

	// containerPath is the absolute path in the node.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^/`
	ContainerPath string `json:"containerPath,omitempty"`

	// readOnly prevents the node from writing to the mount. Defaults to false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}

// Names of backends, equal to the members of spec.backend.
const (
	ContainerBackend = "container"
	SimulatedBackend = "simulated"
)

// Name returns the name of the selected backend.
func (b LocalClusterBackend) Name() string { return backendName(b.Simulated != nil) }

// Name returns the name of the selected backend.
func (b LocalMachineBackend) Name() string { return backendName(b.Simulated != nil) }

func backendName(simulated bool) string {
	if simulated {
		return SimulatedBackend
	}
	return ContainerBackend
}
