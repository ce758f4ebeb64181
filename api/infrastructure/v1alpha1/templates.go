package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// LocalClusterTemplateSpec is the desired state of a LocalClusterTemplate.
type LocalClusterTemplateSpec struct {
	// template is the template of LocalClusters. Cannot be changed.
	// +required
	Template LocalClusterTemplateResource `json:"template,omitempty,omitzero"`
}

// LocalClusterTemplateResource is the template of LocalClusters.
// +kubebuilder:validation:MinProperties=1
type LocalClusterTemplateResource struct {
	// metadata has labels and annotations for the LocalClusters.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of the LocalClusters.
	// +optional
	// +kubebuilder:default={}
	Spec LocalClusterSpec `json:"spec,omitempty,omitzero"`
}

// LocalClusterTemplate is a template of LocalClusters for a ClusterClass.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localclustertemplates,shortName=lct,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type LocalClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +required
	Spec LocalClusterTemplateSpec `json:"spec,omitempty,omitzero"`
}

// LocalClusterTemplateList is a list of LocalClusterTemplates.
// +kubebuilder:object:root=true
type LocalClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the LocalClusterTemplates.
	Items []LocalClusterTemplate `json:"items"`
}

// LocalMachineTemplateSpec is the desired state of a LocalMachineTemplate.
type LocalMachineTemplateSpec struct {
	// template is the template of LocalMachines. Cannot be changed: create a new LocalMachineTemplate and refer to it.
	// +required
	Template LocalMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// LocalMachineTemplateResource is the template of LocalMachines.
// +kubebuilder:validation:MinProperties=1
type LocalMachineTemplateResource struct {
	// metadata has labels and annotations for the LocalMachines.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of the LocalMachines.
	// +optional
	// +kubebuilder:default={}
	Spec LocalMachineSpec `json:"spec,omitempty,omitzero"`
}

// LocalMachineTemplateStatus is the observed state of a LocalMachineTemplate.
// +kubebuilder:validation:MinProperties=1
type LocalMachineTemplateStatus struct {
	// capacity is the capacity for Pods of a node created from this template, as Kubernetes quantities. The cluster
	// autoscaler uses it to scale a group up from zero.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo describes the platform of a node created from this template.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`
}

// Architecture is a processor architecture in Kubernetes notation.
// +kubebuilder:validation:Enum=amd64;arm64;s390x;ppc64le
type Architecture string

// NodeInfo describes the platform of a node.
// +kubebuilder:validation:MinProperties=1
type NodeInfo struct {
	// architecture is the node's processor architecture: amd64, arm64, s390x or ppc64le.
	// +optional
	Architecture Architecture `json:"architecture,omitempty"`

	// operatingSystem is the node's operating system, for example linux.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// LocalMachineTemplate is a template of LocalMachines for MachineSets and control planes.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localmachinetemplates,shortName=lmt,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.template.spec.backend.container.image`,description="Node image, when the template names one"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type LocalMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +required
	Spec LocalMachineTemplateSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status LocalMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// LocalMachineTemplateList is a list of LocalMachineTemplates.
// +kubebuilder:object:root=true
type LocalMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the LocalMachineTemplates.
	Items []LocalMachineTemplate `json:"items"`
}

// LocalMachinePoolTemplateSpec is the desired state of a LocalMachinePoolTemplate.
type LocalMachinePoolTemplateSpec struct {
	// template is the template of LocalMachinePools. Cannot be changed: create a new LocalMachinePoolTemplate and refer
	// to it.
	// +required
	Template LocalMachinePoolTemplateResource `json:"template,omitempty,omitzero"`
}

// LocalMachinePoolTemplateResource is the template of LocalMachinePools.
// +kubebuilder:validation:MinProperties=1
type LocalMachinePoolTemplateResource struct {
	// metadata has labels and annotations for the LocalMachinePools.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of the LocalMachinePools.
	// +optional
	// +kubebuilder:default={}
	Spec LocalMachinePoolSpec `json:"spec,omitempty,omitzero"`
}

// LocalMachinePoolTemplate is a template of LocalMachinePools for a ClusterClass.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localmachinepooltemplates,shortName=lmpt,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type LocalMachinePoolTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +required
	Spec LocalMachinePoolTemplateSpec `json:"spec,omitempty,omitzero"`
}

// LocalMachinePoolTemplateList is a list of LocalMachinePoolTemplates.
// +kubebuilder:object:root=true
type LocalMachinePoolTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the LocalMachinePoolTemplates.
	Items []LocalMachinePoolTemplate `json:"items"`
}
