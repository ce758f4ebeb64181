package v1alpha1

// SSHHostClaim is the SSHMachine that uses a host.
type SSHHostClaim struct {
	// namespace of the SSHMachine.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the SSHMachine.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// namespaceUID is the UID of the Namespace of the SSHMachine when it claimed the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	NamespaceUID string `json:"namespaceUID,omitempty"`

	// clusterName is the name of the Cluster of the SSHMachine, in the same namespace. If the SSHMachine is gone before the
	// host is clean, the controller deletes the Node that the host has registered in this Cluster again.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// claimID in the spec of the SSHMachine and in the record on the host.
	// +required
	// +kubebuilder:validation:MinLength=26
	// +kubebuilder:validation:MaxLength=26
	ClaimID string `json:"claimID,omitempty"`

	// nodeAddress is the IP address of the node if spec.nodeAddress was not set when the host was claimed. Another
	// spec.address does not change it.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	NodeAddress string `json:"nodeAddress,omitempty"`

	// released is true when the SSHMachine does not need the host any more, which is then cleaned.
	// +optional
	Released *bool `json:"released,omitempty"`

	// firstUse is true if no namespace had used the host when the SSHMachine claimed it.
	// +optional
	FirstUse *bool `json:"firstUse,omitempty"`

	// previousNamespace is the namespace that had used the host last when the SSHMachine claimed it. If the claim is
	// removed before it was recorded on the host, the host was not used, and this namespace is the last one again.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	PreviousNamespace string `json:"previousNamespace,omitempty"`

	// previousNamespaceUID is the UID of previousNamespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PreviousNamespaceUID string `json:"previousNamespaceUID,omitempty"`

	// unused is true if the SSHMachine released the host before its bootstrap data ran on it, and no namespace had used the
	// host before. It is then offered to all namespaces in spec.offeredTo as before.
	// +optional
	Unused *bool `json:"unused,omitempty"`
}
