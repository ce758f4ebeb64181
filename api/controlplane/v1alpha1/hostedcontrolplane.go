package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// HostedControlPlaneFinalizer delays the deletion of a HostedControlPlane until its process and data are deleted.
const HostedControlPlaneFinalizer = "hostedcontrolplane.controlplane.slipway.dev"

// Condition types of a HostedControlPlane, in addition to Deleting, Paused and RollingOut of Cluster API.
const (
	// AvailableCondition is true while the API server of the workload cluster is available.
	AvailableCondition = "Available"

	// CertificatesAvailableCondition is true when the certificate authorities and the kubeconfig exist.
	CertificatesAvailableCondition = "CertificatesAvailable"

	// EncryptionKeysAvailableCondition is true if the keys for the encryption of data in etcd exist, or are not
	// required.
	EncryptionKeysAvailableCondition = "EncryptionKeysAvailable"

	// EtcdClusterAvailableCondition is true while etcd is available.
	EtcdClusterAvailableCondition = "EtcdClusterAvailable"

	// ProcessRunningCondition is true while the process of the control plane runs.
	ProcessRunningCondition = "ProcessRunning"

	// VersionSupportedCondition is true if this build includes the Kubernetes version in the spec, or a newer patch
	// version of it that the control plane runs. If it is false, the message lists the included versions.
	VersionSupportedCondition = "VersionSupported"

	// AddonsAppliedCondition is true when the add-ons and the objects that kubeadm join requires exist in the workload
	// cluster.
	AddonsAppliedCondition = "AddonsApplied"

	// RestoredCondition is false while a snapshot is being restored, and true afterwards; it does not exist without a
	// restore.
	RestoredCondition = "Restored"

	// AddonsAvailableCondition is true while kube-proxy runs on every Node and CoreDNS is available.
	AddonsAvailableCondition = "AddonsAvailable"
	// AddonsNotNeededReason is the reason if the control plane has no add-ons, AddonsNoNodesReason if there is no Node on
	// which they could run.
	AddonsNotNeededReason = "NotNeeded"
	AddonsNoNodesReason   = "NoNodes"
)

// HostedControlPlaneSpec is the desired state of a HostedControlPlane.
type HostedControlPlaneSpec struct {
	// version is the Kubernetes version, for example v1.36.3. It must be included in this binary. When it is changed,
	// the control plane restarts in place with the new version.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^v(0|[1-9][0-9]*)\\\\.(0|[1-9][0-9]*)\\\\.(0|[1-9][0-9]*)([-+].*)?$')",message="must be a version with a leading v and three numbers, for example v1.36.3"
	Version string `json:"version,omitempty"`

	// controlPlaneEndpoint is the address of the API server. The controller sets it if it is not specified. Cannot be
	// changed once it is set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.host) == has(self.port)",message="host and port must be set together"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once it is set"
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	HostedControlPlaneSettings `json:",inline"`
}

// HostedControlPlaneStatus is the observed state of a HostedControlPlane.
// +kubebuilder:validation:MinProperties=1
type HostedControlPlaneStatus struct {
	// conditions describe the state of the control plane. Known types: Ready, Available, CertificatesAvailable,
	// EncryptionKeysAvailable, EtcdClusterAvailable, ProcessRunning, VersionSupported, AddonsApplied, AddonsAvailable,
	// Restored, RollingOut, Deleting, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the object that the status reflects.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// controlPlaneEndpoint is the address of the API server, regardless of which object specifies it.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// initialization is the progress of the initial start.
	// +optional
	Initialization HostedControlPlaneInitializationStatus `json:"initialization,omitempty,omitzero"`

	// externalManagedControlPlane is true, because no Machine or Node represents the control plane.
	// +optional
	ExternalManagedControlPlane *bool `json:"externalManagedControlPlane,omitempty"`

	// version is the running Kubernetes version, for clients of the older contract.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// versions are the running Kubernetes versions, oldest first.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Versions []clusterv1.StatusVersion `json:"versions,omitempty"`

	// process describes the process of the control plane.
	// +optional
	Process ProcessStatus `json:"process,omitempty,omitzero"`

	// addonsHash is a hash of the objects last applied to the workload cluster. If it is unchanged, nothing has to be
	// applied.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	AddonsHash string `json:"addonsHash,omitempty"`

	// authority is a fingerprint of the certificates in Secret <cluster>-ca that the API server uses, in their order,
	// and that joining nodes receive. When it changes, new content of the Secret has taken effect.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Authority string `json:"authority,omitempty"`

	// encryptionKeys is a fingerprint of the keys in Secret <cluster>-encryption that the API server uses: the
	// encryption keys, followed by a comma and the decryption-only keys, if any. When it changes, new content of the
	// Secret has taken effect.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	EncryptionKeys string `json:"encryptionKeys,omitempty"`

	// quiesced is the value of the annotation controlplane.slipway.dev/quiesce once the request is fulfilled.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Quiesced string `json:"quiesced,omitempty"`
}

// HostedControlPlaneInitializationStatus is the progress of the initial start of a control plane.
// +kubebuilder:validation:MinProperties=1
type HostedControlPlaneInitializationStatus struct {
	// controlPlaneInitialized becomes true when the API server is available and nodes can join, and remains true.
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// ProcessStatus describes the process of a control plane.
// +kubebuilder:validation:MinProperties=1
type ProcessStatus struct {
	// pid is the process ID on this host; unset if no process runs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PID int32 `json:"pid,omitempty"`

	// since is the start time of the process.
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// restarts is the number of restarts after the process exited unexpectedly. Unset means 0.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Restarts int32 `json:"restarts,omitempty"`

	// lastExit is the last exit status of the process, for example "signal: killed".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	LastExit string `json:"lastExit,omitempty"`
}

// HostedControlPlane is the control plane of one workload cluster as a process on this host: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, without Machines. Regular kubeadm nodes join it. It implements the
// control plane contract of Cluster API, version v1beta2.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostedcontrolplanes,shortName=hcp,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels.cluster\.x-k8s\.io/cluster-name`,description="Cluster this control plane belongs to"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether the API server answers"
// +kubebuilder:printcolumn:name="Initialized",type=boolean,JSONPath=`.status.initialization.controlPlaneInitialized`,description="Whether nodes can join",priority=10
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.controlPlaneEndpoint.host`,description="Host of the API server",priority=10
// +kubebuilder:printcolumn:name="Port",type=integer,JSONPath=`.status.controlPlaneEndpoint.port`,description="Port of the API server",priority=10
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.process.restarts`,description="How often the process was started again after it died",priority=10
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`,description="Kubernetes version that runs"
// +kubebuilder:printcolumn:name="Desired",type=string,JSONPath=`.spec.version`,description="Kubernetes version asked for",priority=10
type HostedControlPlane struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.backend) && has(self.backend.simulated)) == (has(oldSelf.backend) && has(oldSelf.backend.simulated))",message="the backend cannot be changed: create a new cluster instead"
	Spec HostedControlPlaneSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status HostedControlPlaneStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions in status.
func (p *HostedControlPlane) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions replaces the conditions in status.
func (p *HostedControlPlane) SetConditions(conditions []metav1.Condition) {
	p.Status.Conditions = conditions
}

// HostedControlPlaneList is a list of HostedControlPlanes.
// +kubebuilder:object:root=true
type HostedControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the HostedControlPlanes.
	Items []HostedControlPlane `json:"items"`
}
