package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SSHClusterFinalizer is on every SSHCluster that a controller manages.
const SSHClusterFinalizer = "sshcluster.infrastructure.slipway.dev"

// SSHVirtualIPPort is the port of the control plane endpoint at a virtual IP address, and of the API servers behind it.
const SSHVirtualIPPort = 6443

const (
	// EndpointReadyCondition is true when the control plane endpoint of an SSHCluster is known or the control plane
	// provides it.
	EndpointReadyCondition = "EndpointReady"
	// VirtualIPHeldCondition is true when exactly one control plane host holds the virtual IP address. It is absent without
	// a virtual IP address, and until the first host is prepared.
	VirtualIPHeldCondition = "VirtualIPHeld"
)

// SSHClusterSpec is the desired state of an SSHCluster.
type SSHClusterSpec struct {
	// controlPlaneEndpoint is the address of the workload cluster's API server: a load balancer, a DNS name or a virtual IP
	// address. It is not needed if the Cluster or its control plane specifies one, as a hosted control plane can.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.host) == has(self.port)",message="host and port must be set together"
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// virtualIP is an unused IP address in the subnet of the control plane hosts, which becomes the control plane endpoint
	// with port 6443. One of the hosts holds it with keepalived. The operator of the management cluster has to allow it. It
	// cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self) && ip.isCanonical(self)",message="must be an IP address in its usual form, for example 192.0.2.10"
	VirtualIP string `json:"virtualIP,omitempty"`
}

// SSHClusterStatus is the observed state of an SSHCluster.
// +kubebuilder:validation:MinProperties=1
type SSHClusterStatus struct {
	// conditions describe the state of the cluster's infrastructure. Known types: Ready, EndpointReady, VirtualIPHeld,
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
	Initialization SSHClusterInitializationStatus `json:"initialization,omitempty,omitzero"`

	// failureDomains are the failure domains of the SSHHosts that are offered to the namespace.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`

	// virtualIP is the state of spec.virtualIP.
	// +optional
	VirtualIP SSHVirtualIPStatus `json:"virtualIP,omitempty,omitzero"`
}

// SSHVirtualIPStatus is the state of a virtual IP address.
// +kubebuilder:validation:MinProperties=1
type SSHVirtualIPStatus struct {
	// members are the SSHMachines whose hosts can hold the address.
	// +optional
	// +listType=map
	// +listMapKey=machine
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Members []SSHVirtualIPMember `json:"members,omitempty"`
}

// SSHVirtualIPMember is an SSHMachine whose host can hold a virtual IP address.
type SSHVirtualIPMember struct {
	// machine is the name of the SSHMachine.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Machine string `json:"machine,omitempty"`

	// holder is true for the host that holds the address.
	// +optional
	Holder *bool `json:"holder,omitempty"`
}

// SSHClusterInitializationStatus is the progress of the initial provisioning of the cluster's infrastructure.
// +kubebuilder:validation:MinProperties=1
type SSHClusterInitializationStatus struct {
	// provisioned becomes true when the control plane endpoint is known or the control plane provides it, and remains true.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// SSHCluster is the infrastructure of one workload cluster on machines that are reached over SSH: its control plane
// endpoint. It implements the InfraCluster contract of Cluster API, version v1beta2.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=sshclusters,shortName=sshc,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels.cluster\.x-k8s\.io/cluster-name`,description="Cluster this infrastructure belongs to"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the control plane endpoint is known"
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.controlPlaneEndpoint.host`,description="Host of the API server, when this object provides it"
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type SSHCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state. All fields are optional.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.virtualIP) || has(self.virtualIP) && self.virtualIP == oldSelf.virtualIP",message="virtualIP cannot be changed or removed once it is set"
	// +kubebuilder:validation:XValidation:rule="!has(self.virtualIP) || !has(self.controlPlaneEndpoint) || self.controlPlaneEndpoint.host == self.virtualIP && self.controlPlaneEndpoint.port == 6443",message="controlPlaneEndpoint is virtualIP with port 6443, or not set"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.controlPlaneEndpoint) || has(self.controlPlaneEndpoint) && self.controlPlaneEndpoint == oldSelf.controlPlaneEndpoint",message="controlPlaneEndpoint cannot be changed or removed once it is set"
	Spec SSHClusterSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status SSHClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions in status.
func (c *SSHCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions in status.
func (c *SSHCluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// SSHClusterList is a list of SSHClusters.
// +kubebuilder:object:root=true
type SSHClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the SSHClusters.
	Items []SSHCluster `json:"items"`
}

// SSHClusterTemplateSpec is the desired state of an SSHClusterTemplate.
type SSHClusterTemplateSpec struct {
	// template is the template of SSHClusters. Cannot be changed.
	// +required
	Template SSHClusterTemplateResource `json:"template,omitempty,omitzero"`
}

// SSHClusterTemplateResource is the template of SSHClusters.
// +kubebuilder:validation:MinProperties=1
type SSHClusterTemplateResource struct {
	// metadata has labels and annotations for the SSHClusters.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of the SSHClusters.
	// +optional
	// +kubebuilder:default={}
	Spec SSHClusterSpec `json:"spec,omitempty,omitzero"`
}

// SSHClusterTemplate is a template of SSHClusters for a ClusterClass.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=sshclustertemplates,shortName=sshct,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type SSHClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +required
	Spec SSHClusterTemplateSpec `json:"spec,omitempty,omitzero"`
}

// SSHClusterTemplateList is a list of SSHClusterTemplates.
// +kubebuilder:object:root=true
type SSHClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the SSHClusterTemplates.
	Items []SSHClusterTemplate `json:"items"`
}
