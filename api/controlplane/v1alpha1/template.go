package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// HostedControlPlaneTemplateSpec is the desired state of a HostedControlPlaneTemplate.
type HostedControlPlaneTemplateSpec struct {
	// template is the template of HostedControlPlanes. Cannot be changed: create a new HostedControlPlaneTemplate and
	// refer to it.
	// +required
	Template HostedControlPlaneTemplateResource `json:"template,omitempty,omitzero"`
}

// HostedControlPlaneTemplateResource is the template of HostedControlPlanes.
// +kubebuilder:validation:MinProperties=1
type HostedControlPlaneTemplateResource struct {
	// metadata has labels and annotations for the HostedControlPlanes.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of the HostedControlPlanes. The version and the endpoint are set from the Cluster.
	// +optional
	// +kubebuilder:default={}
	Spec HostedControlPlaneSettings `json:"spec,omitempty,omitzero"`
}

// HostedControlPlaneTemplate is a template of HostedControlPlanes for a ClusterClass.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostedcontrolplanetemplates,shortName=hcpt,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type HostedControlPlaneTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +required
	Spec HostedControlPlaneTemplateSpec `json:"spec,omitempty,omitzero"`
}

// HostedControlPlaneTemplateList is a list of HostedControlPlaneTemplates.
// +kubebuilder:object:root=true
type HostedControlPlaneTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the HostedControlPlaneTemplates.
	Items []HostedControlPlaneTemplate `json:"items"`
}
