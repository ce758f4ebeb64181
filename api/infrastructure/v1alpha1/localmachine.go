package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// LocalMachineFinalizer delays the deletion of a LocalMachine until all resources of its node on the host are deleted.
const LocalMachineFinalizer = "localmachine.infrastructure.slipway.dev"

// Condition types of a LocalMachine, in addition to Ready, Deleting and Paused of Cluster API.
const (
	// MachineProvisionedCondition is true while the machine exists and runs, with any backend.
	MachineProvisionedCondition = "MachineProvisioned"

	// BootstrapExecSucceededCondition is true once the bootstrap data has run in the node and written its sentinel
	// file. Simulated machines, in which nothing runs, do not have it.
	BootstrapExecSucceededCondition = "BootstrapExecSucceeded"
	// VersionMatchesCondition is false on a LocalMachine whose node image has another Kubernetes version than its
	// Machine. The node works if Kubernetes allows this version skew; a rollout of a new version does not change the
	// image.
	VersionMatchesCondition = "VersionMatches"

	// KubeletRunningCondition is false while the Node is not ready and its kubelet does not run. Otherwise it is absent.
	KubeletRunningCondition = "KubeletRunning"
)

// LocalMachineSpec is the desired state of a LocalMachine.
type LocalMachineSpec struct {
	// providerID is the provider ID in the Node's spec.providerID. The controller sets it. A machine that is created
	// with a provider ID, as after a move or a restore, only adopts a node that was created for a LocalMachine with
	// this namespace and name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^slipway:///slipway-[a-z0-9]([a-z0-9.-]*[a-z0-9])?-[0-9a-f]{8}$')",message="must be what the controller sets: slipway:/// and the name of the machine"
	ProviderID string `json:"providerID,omitempty"`

	// backend selects the implementation of the machine. Defaults to a container with the node image for the Machine's
	// Kubernetes version. Cannot be changed: a machine is replaced instead of updated.
	// +optional
	// +kubebuilder:default={container: {}}
	Backend LocalMachineBackend `json:"backend,omitempty,omitzero"`

	// failureDomain is the failure domain that the machine was placed in, for clients of the older contract. It is
	// determined by spec.failureDomain of the owning Machine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`
}

// LocalMachineStatus is the observed state of a LocalMachine.
// +kubebuilder:validation:MinProperties=1
type LocalMachineStatus struct {
	// conditions describe the state of the machine. Known types: Ready, MachineProvisioned, BootstrapExecSucceeded,
	// Deleting, Paused.
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
	Initialization LocalMachineInitializationStatus `json:"initialization,omitempty,omitzero"`

	// addresses are the addresses of the node: a Hostname and an InternalIP.
	// +optional
	Addresses clusterv1.MachineAddresses `json:"addresses,omitempty"`

	// failureDomain is the failure domain that the machine was placed in.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// interruptible means that the machine may be terminated at any time. It is unset, because no backend does this.
	// +optional
	Interruptible *bool `json:"interruptible,omitempty"`

	// instanceID is the identifier of the machine in its backend, for example the ID of a node's container.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	InstanceID string `json:"instanceID,omitempty"`

	// nodeVersion is the Kubernetes version of the node image, for example v1.36.3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	NodeVersion string `json:"nodeVersion,omitempty"`
}

// LocalMachineInitializationStatus is the progress of the initial provisioning of a machine.
// +kubebuilder:validation:MinProperties=1
type LocalMachineInitializationStatus struct {
	// provisioned becomes true when the node runs and its bootstrap data has succeeded, and remains true.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// LocalMachine is one node on this host. It implements the InfraMachine contract of Cluster API, version v1beta2.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localmachines,shortName=lm,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels.cluster\.x-k8s\.io/cluster-name`,description="Cluster this machine belongs to"
// +kubebuilder:printcolumn:name="Machine",type=string,JSONPath=`.metadata.ownerReferences[?(@.kind=="Machine")].name`,description="Machine that owns this object"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the node runs and has been bootstrapped"
// +kubebuilder:printcolumn:name="Internal IP",type=string,JSONPath=`.status.addresses[?(@.type=="InternalIP")].address`,description="Address of the node"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.nodeVersion`,description="Kubernetes version of the node image"
// +kubebuilder:printcolumn:name="Provider ID",type=string,JSONPath=`.spec.providerID`,description="Identifier that the Node carries",priority=10
// +kubebuilder:printcolumn:name="Failure Domain",type=string,JSONPath=`.status.failureDomain`,description="Failure domain that the machine was placed in",priority=10
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type LocalMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state. All fields have defaults.
	// +optional
	// +kubebuilder:default={backend: {container: {}}}
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)",message="providerID cannot be changed or removed once it is set"
	// +kubebuilder:validation:XValidation:rule="self.backend == oldSelf.backend",message="backend cannot be changed: create a new machine instead"
	Spec LocalMachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status LocalMachineStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions in status.
func (m *LocalMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions in status.
func (m *LocalMachine) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

// LocalMachineList is a list of LocalMachines.
// +kubebuilder:object:root=true
type LocalMachineList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the LocalMachines.
	Items []LocalMachine `json:"items"`
}
