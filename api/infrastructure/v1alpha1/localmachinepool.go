package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// LocalMachinePoolFinalizer delays the deletion of a LocalMachinePool until all its LocalMachines are deleted.
const LocalMachinePoolFinalizer = "localmachinepool.infrastructure.slipway.dev"

// LocalMachinePoolSpec is the desired state of a LocalMachinePool.
type LocalMachinePoolSpec struct {
	// providerID identifies the pool as a whole, for information only. The controller sets it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// providerIDList has the provider IDs of the existing machines. The controller updates it within five seconds of a
	// change.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	ProviderIDList []string `json:"providerIDList,omitempty"`

	// template is the template of the pool's machines. A change replaces the machines.
	// +optional
	// +kubebuilder:default={}
	Template LocalMachinePoolMachineTemplate `json:"template,omitempty,omitzero"`
}

// LocalMachinePoolMachineTemplate is the template of the LocalMachines of a pool.
type LocalMachinePoolMachineTemplate struct {
	// metadata has labels and annotations for the LocalMachines of the pool.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// backend selects the implementation of the machines. Defaults to containers with the node image for the pool's
	// Kubernetes version.
	// +optional
	// +kubebuilder:default={container: {}}
	Backend LocalMachineBackend `json:"backend,omitempty,omitzero"`
}

// LocalMachinePoolStatus is the observed state of a LocalMachinePool.
// +kubebuilder:validation:MinProperties=1
type LocalMachinePoolStatus struct {
	// conditions describe the state of the pool. Known types: Ready, Deleting, Paused.
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
	Initialization LocalMachinePoolInitializationStatus `json:"initialization,omitempty,omitzero"`

	// ready becomes true together with initialization.provisioned. Cluster API up to v1.14 reads this field of an
	// InfraMachinePool although the contract specifies the other one, so both are set.
	// +optional
	Ready *bool `json:"ready,omitempty"`

	// replicas is the number of existing machines.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// instances describes each machine, for information only.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10000
	Instances []LocalMachinePoolInstance `json:"instances,omitempty"`

	// infrastructureMachineKind is LocalMachine: the pool has one LocalMachine per replica, and a Machine is created
	// for each.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	InfrastructureMachineKind string `json:"infrastructureMachineKind,omitempty"`

	// capacity is the capacity for Pods of a node of this pool, as Kubernetes quantities. The cluster autoscaler uses
	// it to scale the pool up from zero.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo describes the platform of a node of this pool.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`
}

// LocalMachinePoolInitializationStatus is the progress of the initial provisioning of a pool.
// +kubebuilder:validation:MinProperties=1
type LocalMachinePoolInitializationStatus struct {
	// provisioned becomes true when the desired number of machines has been bootstrapped, and remains true.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// LocalMachinePoolInstance describes one machine of a pool.
type LocalMachinePoolInstance struct {
	// name is the name of the LocalMachine.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// instanceID is the identifier of the machine in its backend: the container ID.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	InstanceID string `json:"instanceID,omitempty"`

	// providerID is the provider ID of the Node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// addresses are the addresses of the node.
	// +optional
	Addresses clusterv1.MachineAddresses `json:"addresses,omitempty"`

	// failureDomain is the failure domain that the machine was placed in.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// version is the Kubernetes version of the node image, for example v1.36.3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// ready is true if the node runs and has been bootstrapped.
	// +optional
	Ready *bool `json:"ready,omitempty"`
}

// LocalMachinePool is a group of identical nodes on this host. The number of replicas is set in the owning MachinePool.
// It implements the InfraMachinePool contract of Cluster API, version v1beta2.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localmachinepools,shortName=lmp,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels.cluster\.x-k8s\.io/cluster-name`,description="Cluster this pool belongs to"
// +kubebuilder:printcolumn:name="MachinePool",type=string,JSONPath=`.metadata.ownerReferences[?(@.kind=="MachinePool")].name`,description="MachinePool that owns this object",priority=10
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether all machines run and have been bootstrapped"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`,description="Number of machines that exist"
// +kubebuilder:printcolumn:name="Provider ID",type=string,JSONPath=`.spec.providerID`,description="Identifier of the pool",priority=10
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type LocalMachinePool struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state. All fields have defaults.
	// +optional
	// +kubebuilder:default={}
	Spec LocalMachinePoolSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status LocalMachinePoolStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions in status.
func (p *LocalMachinePool) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions replaces the conditions in status.
func (p *LocalMachinePool) SetConditions(conditions []metav1.Condition) {
	p.Status.Conditions = conditions
}

// LocalMachinePoolList is a list of LocalMachinePools.
// +kubebuilder:object:root=true
type LocalMachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the LocalMachinePools.
	Items []LocalMachinePool `json:"items"`
}
