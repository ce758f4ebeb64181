package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// LocalClusterFinalizer delays the deletion of a LocalCluster until its network is deleted.
const LocalClusterFinalizer = "localcluster.infrastructure.slipway.dev"

// Condition types of a LocalCluster, in addition to Ready, Deleting and Paused of Cluster API.
const (
	// NetworkReadyCondition is true when the network of the cluster exists as specified.
	NetworkReadyCondition = "NetworkReady"
	// LoadBalancerReadyCondition is true while the load balancer runs and the API server of a control plane Machine is
	// reachable. Clusters with a hosted control plane or an external endpoint do not have it. It is not part of Ready,
	// because Machines wait for Ready, and the load balancer waits for Machines.
	LoadBalancerReadyCondition = "LoadBalancerReady"
)

// LocalClusterSpec is the desired state of a LocalCluster.
type LocalClusterSpec struct {
	// controlPlaneEndpoint is the address of the workload cluster's API server. If it is not set, and neither the
	// Cluster nor its control plane specifies one, it defaults to the first address of the network and port 6443.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.host) == has(self.port)",message="host and port must be set together"
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// backend selects the implementation of the cluster's infrastructure. Defaults to a container network with a subnet
	// that is unused on this host.
	// +optional
	// +kubebuilder:default={container: {}}
	Backend LocalClusterBackend `json:"backend,omitempty,omitzero"`

	// failureDomains are copied to status.failureDomains. They are names without physical meaning, because everything
	// runs on one host.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`
}

// LocalClusterStatus is the observed state of a LocalCluster.
// +kubebuilder:validation:MinProperties=1
type LocalClusterStatus struct {
	// conditions describe the state of the cluster's infrastructure. Known types: Ready, NetworkReady,
	// LoadBalancerReady, Deleting, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the object that the status reflects.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// initialization is the progress of the initial provisioning.
	// +optional
	Initialization LocalClusterInitializationStatus `json:"initialization,omitempty,omitzero"`

	// failureDomains are the failure domains that machines can be placed in.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`

	// network is the observed network.
	// +optional
	Network LocalClusterNetworkStatus `json:"network,omitempty,omitzero"`
}

// LocalClusterInitializationStatus is the progress of the initial provisioning of the cluster's infrastructure.
// +kubebuilder:validation:MinProperties=1
type LocalClusterInitializationStatus struct {
	// provisioned becomes true when the network exists, and remains true.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// LocalClusterNetworkStatus is the observed state of the cluster's network.
// +kubebuilder:validation:MinProperties=1
type LocalClusterNetworkStatus struct {
	// name is the network's name in the container engine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// subnet is the network's IPv4 range in CIDR notation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Subnet string `json:"subnet,omitempty"`

	// gateway is the address of this host in the network; hosted control planes listen on it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Gateway string `json:"gateway,omitempty"`
}

// LocalCluster is the infrastructure of one workload cluster on this host: a dedicated network. It implements the
// InfraCluster contract of Cluster API, version v1beta2.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localclusters,shortName=lc,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels.cluster\.x-k8s\.io/cluster-name`,description="Cluster this infrastructure belongs to"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the network is as asked for"
// +kubebuilder:printcolumn:name="Subnet",type=string,JSONPath=`.status.network.subnet`,description="Range of the cluster's network"
// +kubebuilder:printcolumn:name="Network",type=string,JSONPath=`.status.network.name`,description="Name of the network in the container engine",priority=10
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.controlPlaneEndpoint.host`,description="Host of the API server, when this object provides it",priority=10
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type LocalCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state. All fields have defaults.
	// +optional
	// +kubebuilder:default={backend: {container: {}}}
	// +kubebuilder:validation:XValidation:rule="(has(self.backend) && has(self.backend.simulated)) == (has(oldSelf.backend) && has(oldSelf.backend.simulated))",message="the backend cannot be changed: create a new cluster instead"
	// +kubebuilder:validation:XValidation:rule="(has(self.backend) && has(self.backend.container) && has(self.backend.container.network) && has(self.backend.container.network.subnet) ? self.backend.container.network.subnet : \"\") == (has(oldSelf.backend) && has(oldSelf.backend.container) && has(oldSelf.backend.container.network) && has(oldSelf.backend.container.network.subnet) ? oldSelf.backend.container.network.subnet : \"\")",message="backend.container.network.subnet cannot be changed: create a new cluster instead"
	// +kubebuilder:validation:XValidation:rule="(has(self.backend) && has(self.backend.container) && has(self.backend.container.network) && has(self.backend.container.network.internet) && self.backend.container.network.internet) == (has(oldSelf.backend) && has(oldSelf.backend.container) && has(oldSelf.backend.container.network) && has(oldSelf.backend.container.network.internet) && oldSelf.backend.container.network.internet)",message="backend.container.network.internet cannot be changed: create a new cluster instead"
	Spec LocalClusterSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status LocalClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions in status.
func (c *LocalCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions in status.
func (c *LocalCluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// LocalClusterList is a list of LocalClusters.
// +kubebuilder:object:root=true
type LocalClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the LocalClusters.
	Items []LocalCluster `json:"items"`
}
