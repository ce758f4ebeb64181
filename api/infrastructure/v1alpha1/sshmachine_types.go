package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SSHMachineFinalizer delays the deletion of an SSHMachine until its host is cleaned.
const SSHMachineFinalizer = "sshmachine.infrastructure.slipway.dev"

// ForceReleaseAnnotation with the value "true" on an SSHMachine that is being deleted ends its wait for a host that cannot be
// cleaned now. The host is quarantined until it was reached again and cleaned. On an SSHHost that is being deleted and was
// released, it allows the deletion of a machine that is gone for good.
const ForceReleaseAnnotation = "infrastructure.slipway.dev/force-release"

// Condition types of an SSHMachine, in addition to BootstrapExecSucceeded and to Ready, Deleting and Paused of Cluster API.
const (
	// HostClaimedCondition is true while the machine has a host. It is false with reason MachineRemoved if a provisioned machine
	// has lost its host.
	HostClaimedCondition = "HostClaimed"
	// HostPreparedCondition is true once everything that a node needs is installed on the host.
	HostPreparedCondition = "HostPrepared"
	// HostReachableCondition is true while the controller can connect to the host.
	HostReachableCondition = "HostReachable"
)

// SSHBundle specifies where the programs of a node come from.
// +kubebuilder:validation:Enum=Managed;None
type SSHBundle string

// Values of [SSHBundle].
const (
	// SSHBundleManaged installs the bundle for the Machine's Kubernetes version.
	SSHBundleManaged SSHBundle = "Managed"
	// SSHBundleNone uses what is installed on the host.
	SSHBundleNone SSHBundle = "None"
)

// SSHBundleCache specifies what happens to the bundles on a host that is cleaned.
// +kubebuilder:validation:Enum=Keep;Delete
type SSHBundleCache string

// Values of [SSHBundleCache].
const (
	// SSHBundleCacheKeep keeps the two newest bundles, so that the next node needs no upload.
	SSHBundleCacheKeep SSHBundleCache = "Keep"
	// SSHBundleCacheDelete deletes all bundles.
	SSHBundleCacheDelete SSHBundleCache = "Delete"
)

// SSHMachineCleaning specifies what the cleaning of a host does in addition to the removal of the node.
// +kubebuilder:validation:MinProperties=1
type SSHMachineCleaning struct {
	// bundles specifies what happens to the bundles on the host: Keep keeps the two newest, so that the next node needs no
	// upload, Delete deletes all. If it is not set, they are kept.
	// +optional
	Bundles SSHBundleCache `json:"bundles,omitempty"`

	// unreachableTimeoutSeconds is the time since when a host cannot be reached after which it is released without being
	// cleaned, if a health check replaces the Machine. Until the host can be reached again and is clean, it is quarantined.
	// The deletion of a Machine by a user is not affected. If it is not set, the time is 300 seconds. If it is 0, the host is
	// only released with the annotation infrastructure.slipway.dev/force-release.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnreachableTimeoutSeconds *int32 `json:"unreachableTimeoutSeconds,omitempty"`
}

// SSHMachineSpec is the desired state of an SSHMachine.
// +kubebuilder:validation:XValidation:rule="!has(self.providerID) || has(self.claimID) && self.providerID == 'ssh://' + self.claimID",message="providerID must be ssh:// and the claimID"
type SSHMachineSpec struct {
	// providerID is the provider ID in the Node's spec.providerID. The controller sets it.
	// +optional
	// +kubebuilder:validation:MinLength=32
	// +kubebuilder:validation:MaxLength=32
	ProviderID string `json:"providerID,omitempty"`

	// claimID identifies the machine on its host and in the provider ID. The controller sets it before it claims a host. A
	// machine that is created with a claim ID, as after a move or a restore, finds its host by the record on it.
	// +optional
	// +kubebuilder:validation:MinLength=26
	// +kubebuilder:validation:MaxLength=26
	// +kubebuilder:validation:Pattern=`^[a-z2-7]{26}$`
	ClaimID string `json:"claimID,omitempty"`

	// hostSelector selects the SSHHosts that the machine may claim by their labels, out of those that are offered to the
	// namespace. If it is not set, all of these are selected.
	// +optional
	HostSelector *metav1.LabelSelector `json:"hostSelector,omitempty"`

	// failureDomain that the host must be in, if the Machine does not specify one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// bootstrapTimeoutSeconds is the time after which bootstrap data that still runs has failed.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=7200
	BootstrapTimeoutSeconds int32 `json:"bootstrapTimeoutSeconds,omitempty"`

	// bundle specifies where the programs of the node come from: Managed installs the bundle for the Machine's Kubernetes
	// version, None uses what is installed on the host.
	// +optional
	// +kubebuilder:default=Managed
	Bundle SSHBundle `json:"bundle,omitempty"`

	// settings configure what the provider installs on the host. A proxy and registry mirrors replace those in the settings of
	// the SSHHost, and certificate authorities are trusted in addition to these. They have no effect if bundle is None.
	// +optional
	Settings SSHHostSettings `json:"settings,omitempty,omitzero"`

	// cleaning specifies what the cleaning of the host does when the machine releases it. It always removes the node with
	// its programs, containers and data, and compares the host with its state from before. Files that Pods wrote to other
	// directories of the host remain: only a reinstallation removes these.
	// +optional
	Cleaning SSHMachineCleaning `json:"cleaning,omitempty,omitzero"`
}

// SSHHostReference refers to an SSHHost.
type SSHHostReference struct {
	// namespace of the SSHHost.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the SSHHost.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// SSHMachineStatus is the observed state of an SSHMachine.
// +kubebuilder:validation:MinProperties=1
type SSHMachineStatus struct {
	// conditions describe the state of the machine. Known types: Ready, HostClaimed, HostPrepared, HostReachable,
	// BootstrapExecSucceeded, Deleting, Paused.
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
	Initialization SSHMachineInitializationStatus `json:"initialization,omitempty,omitzero"`

	// addresses are the addresses of the node: a Hostname and an InternalIP.
	// +optional
	Addresses clusterv1.MachineAddresses `json:"addresses,omitempty"`

	// failureDomain is the failure domain of the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// interruptible means that the machine may be taken away at any time, as spec.interruptible of its SSHHost says.
	// +optional
	Interruptible *bool `json:"interruptible,omitempty"`

	// hostRef refers to the SSHHost that the machine has claimed.
	// +optional
	HostRef *SSHHostReference `json:"hostRef,omitempty"`

	// unsuitableHosts are the SSHHosts that the machine has released because their preflight checks for this machine failed. It
	// does not claim them again for ten minutes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	UnsuitableHosts []SSHUnsuitableHost `json:"unsuitableHosts,omitempty"`
}

// SSHUnsuitableHost is an SSHHost that cannot become a machine.
type SSHUnsuitableHost struct {
	SSHHostReference `json:",inline"`

	// since is the time when the machine released the host.
	// +required
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// message has the problems that the preflight checks found, each with its remedy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Message string `json:"message,omitempty"`
}

// SSHMachineInitializationStatus is the progress of the initial provisioning of a machine.
// +kubebuilder:validation:MinProperties=1
type SSHMachineInitializationStatus struct {
	// provisioned becomes true when the bootstrap data has succeeded on the host, and remains true.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// SSHMachine is one node on a machine that is reached over SSH. It implements the InfraMachine contract of Cluster API,
// version v1beta2.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=sshmachines,shortName=sshm,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels.cluster\.x-k8s\.io/cluster-name`,description="Cluster this machine belongs to"
// +kubebuilder:printcolumn:name="Machine",type=string,JSONPath=`.metadata.ownerReferences[?(@.kind=="Machine")].name`,description="Machine that owns this object"
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.hostRef.name`,description="SSHHost of the machine"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the node runs and has been bootstrapped"
// +kubebuilder:printcolumn:name="Internal IP",type=string,JSONPath=`.status.addresses[?(@.type=="InternalIP")].address`,description="Address of the node"
// +kubebuilder:printcolumn:name="Provider ID",type=string,JSONPath=`.spec.providerID`,description="Identifier that the Node carries",priority=10
// +kubebuilder:printcolumn:name="Failure Domain",type=string,JSONPath=`.status.failureDomain`,description="Failure domain of the host",priority=10
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type SSHMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state. All fields have defaults.
	// +optional
	// +kubebuilder:default={bundle: Managed}
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || has(self.providerID) && self.providerID == oldSelf.providerID",message="providerID cannot be changed or removed once it is set"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.claimID) || has(self.claimID) && self.claimID == oldSelf.claimID",message="claimID cannot be changed or removed once it is set"
	Spec SSHMachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status SSHMachineStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions in status.
func (m *SSHMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions in status.
func (m *SSHMachine) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

// SSHMachineList is a list of SSHMachines.
// +kubebuilder:object:root=true
type SSHMachineList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the SSHMachines.
	Items []SSHMachine `json:"items"`
}

// SSHMachineTemplateSpec is the desired state of an SSHMachineTemplate.
type SSHMachineTemplateSpec struct {
	// template is the template of SSHMachines. Cannot be changed: create a new SSHMachineTemplate and refer to it.
	// +required
	Template SSHMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// SSHMachineTemplateResource is the template of SSHMachines.
// +kubebuilder:validation:MinProperties=1
type SSHMachineTemplateResource struct {
	// metadata has labels and annotations for the SSHMachines.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of the SSHMachines.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:XValidation:rule="!has(self.claimID) && !has(self.providerID)",message="claimID and providerID identify one machine and cannot be set in a template"
	Spec SSHMachineSpec `json:"spec,omitempty,omitzero"`
}

// SSHMachineTemplateStatus is the observed state of an SSHMachineTemplate.
// +kubebuilder:validation:MinProperties=1
type SSHMachineTemplateStatus struct {
	// capacity is the capacity for Pods of a node created from this template, as Kubernetes quantities: the least of all
	// SSHHosts that match it, are not quarantined and have been checked. The cluster autoscaler uses it to scale a group up from zero.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo describes the platform of a node created from this template. The architecture is set only if all SSHHosts that
	// match have the same.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`
}

// SSHMachineTemplate is a template of SSHMachines for MachineSets and control planes.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=sshmachinetemplates,shortName=sshmt,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type SSHMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +required
	Spec SSHMachineTemplateSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status SSHMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// SSHMachineTemplateList is a list of SSHMachineTemplates.
// +kubebuilder:object:root=true
type SSHMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the SSHMachineTemplates.
	Items []SSHMachineTemplate `json:"items"`
}
