package v1alpha1

// LocalClusterBackend chooses what a LocalCluster is made of. Exactly one member is set.
// +kubebuilder:validation:ExactlyOneOf=container
type LocalClusterBackend struct {
	// container makes the cluster's network a network of the container engine on this host.
	// +optional
	Container *ContainerCluster `json:"container,omitempty"`
}

// ContainerCluster is what the container backend needs to know about a cluster.
type ContainerCluster struct {
	// network is the network that all nodes of the cluster share.
	// +optional
	Network ContainerNetwork `json:"network,omitempty,omitzero"`
}

// ContainerNetwork describes the internal network of one cluster.
// +kubebuilder:validation:MinProperties=1
type ContainerNetwork struct {
	// subnet is the IPv4 range of the network in CIDR notation, for example 172.31.0.0/16. Nodes, Pods and Services
	// take their addresses from it, so that no traffic of the cluster can leave this host; it must hold at least
	// 4096 addresses (/20). When unset, a free range is chosen, and status.network.subnet tells which.
	// Cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self) == cidr(self).masked()",message="must be an IPv4 network in CIDR notation with no host bits set, for example 172.31.0.0/16"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || (cidr(self).prefixLength() >= 8 && cidr(self).prefixLength() <= 20)",message="must be between /8 and /20: nodes, Pods and Services share it"
	Subnet string `json:"subnet,omitempty"`
}

// LocalMachineBackend chooses what a machine is made of. Exactly one member is set.
// +kubebuilder:validation:ExactlyOneOf=container
type LocalMachineBackend struct {
	// container makes the machine a container that runs systemd, containerd and the kubelet.
	// +optional
	Container *ContainerMachine `json:"container,omitempty"`
}

// ContainerMachine is what the container backend needs to know about a machine.
type ContainerMachine struct {
	// image is the node image, a name that the container engine of this host has; it is never pulled. Images in
	// kind's node layout are accepted. When unset, the image that `slipway image build` makes for the Kubernetes
	// version of the Machine is used.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// extraMounts are folders or files of this host that appear inside the node.
	// +optional
	// +listType=map
	// +listMapKey=containerPath
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ExtraMounts []Mount `json:"extraMounts,omitempty"`

	// bootstrapTimeoutSeconds is how long, in seconds, the bootstrap data may run inside the node before the machine
	// counts as failed. Defaults to 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	BootstrapTimeoutSeconds int32 `json:"bootstrapTimeoutSeconds,omitempty"`
}

// Mount is one folder or file of the host that is visible inside a node.
type Mount struct {
	// hostPath is the absolute path on this host. It must exist.
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
