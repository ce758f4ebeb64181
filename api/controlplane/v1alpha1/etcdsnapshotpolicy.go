package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TakeSnapshotAnnotation on an EtcdSnapshotPolicy requests a snapshot of one of its Clusters now: its value is the name
// of the snapshot, <cluster>-<time as 20261125T120000Z>. The controller removes it when the snapshot is stored, or has
// failed.
const TakeSnapshotAnnotation = "controlplane.slipway.dev/take-snapshot"

// Condition types of an EtcdSnapshotPolicy, in addition to Paused.
const (
	// ScheduleValidCondition is true if the schedule is valid.
	ScheduleValidCondition = "ScheduleValid"

	// StoreAvailableCondition is true if the last access to the store with its credentials succeeded.
	StoreAvailableCondition = "StoreAvailable"

	// SnapshotsUpToDateCondition is true if every Cluster has the snapshots that were due.
	SnapshotsUpToDateCondition = "SnapshotsUpToDate"

	// ReadyCondition is true if all other conditions are true.
	ReadyCondition = "Ready"
)

// DefaultSnapshotCount is the default number of snapshots to retain for a Cluster.
const DefaultSnapshotCount = 7

// Limits of an EtcdSnapshotPolicy.
const (
	// MaxSnapshotClusters is the maximum number of Clusters of one policy.
	MaxSnapshotClusters = 100
	// MaxListedSnapshots is the maximum number of snapshots of one Cluster listed in the status, the newest ones.
	MaxListedSnapshots = 10
)

// EtcdSnapshotPolicySpec is the desired state of an EtcdSnapshotPolicy.
// +kubebuilder:validation:XValidation:rule="has(self.clusterName) != has(self.clusterSelector)",message="exactly one of clusterName and clusterSelector must be set"
type EtcdSnapshotPolicySpec struct {
	// clusterName is the name of a single Cluster of this namespace whose snapshots are taken.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// clusterSelector selects the Clusters of this namespace whose snapshots are taken, by their labels; an empty
	// selector matches all Clusters. A policy takes snapshots of at most 100 Clusters, the first by name.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// schedule is the schedule of snapshots in UTC: five cron fields (minute, hour, day of month, month, day of week),
	// or @hourly, @daily, @weekly or @monthly. If several snapshots were missed, only the last one is taken later. At
	// most one snapshot of a Cluster is taken every five minutes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Schedule string `json:"schedule,omitempty"`

	// suspend, if true, stops taking and removing snapshots.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// retention determines which snapshots are removed.
	// +optional
	Retention SnapshotRetention `json:"retention,omitempty,omitzero"`

	// destination is the store for snapshots.
	// +required
	Destination SnapshotDestination `json:"destination,omitempty,omitzero"`

	// encryption encrypts snapshots, which contain all Secrets of the workload cluster.
	// +optional
	Encryption SnapshotEncryption `json:"encryption,omitempty,omitzero"`
}

// SnapshotRetention determines which snapshots of a Cluster are removed: those that exceed the count or the age. The
// newest snapshot is never removed.
// +kubebuilder:validation:MinProperties=1
type SnapshotRetention struct {
	// count is the number of snapshots to retain. Defaults to 7.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	Count int32 `json:"count,omitempty"`

	// maximumAgeHours is the maximum age of a snapshot in hours. If unset, it is unlimited.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=87600
	MaximumAgeHours int32 `json:"maximumAgeHours,omitempty"`
}

// SnapshotDestination is the store for snapshots.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type SnapshotDestination struct {
	// folder stores snapshots on the host of the manager.
	// +optional
	Folder *SnapshotFolder `json:"folder,omitempty"`

	// s3 stores snapshots in an S3-compatible store.
	// +optional
	S3 *SnapshotBucket `json:"s3,omitempty"`
}

// SnapshotFolder is a folder on the host of the manager, with a subfolder for each namespace.
type SnapshotFolder struct {
	// path is a folder that the operator allows (snapshots.folders in the configuration file), or a subfolder of one.
	// Defaults to the folder snapshots in the data directory.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`
}

// SnapshotBucket is a bucket of an S3-compatible store.
type SnapshotBucket struct {
	// endpoint is the host of the store, with a port if it is not 443 (or 80 with insecure). The operator must allow it
	// (snapshots.endpoints in the configuration file).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Endpoint string `json:"endpoint,omitempty"`

	// bucket is the name of an existing bucket.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	Bucket string `json:"bucket,omitempty"`

	// prefix is prepended to the names of snapshots, with a slash as separator. Defaults to none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`
	Prefix string `json:"prefix,omitempty"`

	// region is the region of the bucket. Defaults to us-east-1.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	Region string `json:"region,omitempty"`

	// insecure, if true, uses HTTP, so that snapshots can be read and modified in transit.
	// +optional
	Insecure *bool `json:"insecure,omitempty"`

	// certificateAuthority are CA certificates in PEM format that verify the store's certificate. Defaults to the CA
	// certificates of the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CertificateAuthority string `json:"certificateAuthority,omitempty"`

	// credentialsSecretName is the name of a Secret in this namespace with the keys accessKeyID and secretAccessKey.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CredentialsSecretName string `json:"credentialsSecretName,omitempty"`
}

// SnapshotEncryption encrypts snapshots with age.
// +kubebuilder:validation:MinProperties=1
type SnapshotEncryption struct {
	// recipients are the age recipients (age1…) that can decrypt snapshots. To restore a snapshot, the identity of one
	// of them is required.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Recipients []string `json:"recipients,omitempty"`
}

// EtcdSnapshotPolicyStatus is the observed state of an EtcdSnapshotPolicy.
// +kubebuilder:validation:MinProperties=1
type EtcdSnapshotPolicyStatus struct {
	// conditions describe the state of the policy. Known types: ScheduleValid, StoreAvailable, SnapshotsUpToDate,
	// Ready, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the object that the status reflects.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastSnapshotTime is the time of the newest snapshot.
	// +optional
	LastSnapshotTime metav1.Time `json:"lastSnapshotTime,omitempty,omitzero"`

	// nextSnapshotTime is the time when the next snapshots are due.
	// +optional
	NextSnapshotTime metav1.Time `json:"nextSnapshotTime,omitempty,omitzero"`

	// clusters describe the snapshots of each Cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Clusters []ClusterSnapshots `json:"clusters,omitempty"`
}

// ClusterSnapshots describe the snapshots of one Cluster.
type ClusterSnapshots struct {
	// name is the name of the Cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// count is the number of snapshots in the store. Unset means 0.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count,omitempty"`

	// snapshots are the newest snapshots, at most 10, newest first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Snapshots []EtcdSnapshot `json:"snapshots,omitempty"`

	// lastFailureTime is the time of the last failed snapshot; unset after a snapshot has succeeded.
	// +optional
	LastFailureTime metav1.Time `json:"lastFailureTime,omitempty,omitzero"`

	// message is the reason why a snapshot that was due is missing.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// EtcdSnapshot is a snapshot of etcd in a store.
type EtcdSnapshot struct {
	// name is the name of the snapshot.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// time is the time when the snapshot was taken.
	// +required
	Time metav1.Time `json:"time,omitempty,omitzero"`

	// revision is the etcd revision.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Revision int64 `json:"revision,omitempty"`

	// bytes is the size of the snapshot before encryption.
	// +required
	// +kubebuilder:validation:Minimum=1
	Bytes int64 `json:"bytes,omitempty"`

	// version is the Kubernetes version that wrote the data, if it is known.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// encrypted is true if the snapshot is encrypted with age.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// EtcdSnapshotPolicy takes etcd snapshots of workload clusters on a schedule, and removes old ones. It supports hosted
// control planes, and kubeadm control planes on Machines.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=etcdsnapshotpolicies,shortName=esp,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`,description="When snapshots are taken, in UTC"
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`,description="Whether snapshots are suspended"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether all snapshots that were due are there"
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastSnapshotTime`,description="Time since the newest snapshot"
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type EtcdSnapshotPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +required
	Spec EtcdSnapshotPolicySpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status EtcdSnapshotPolicyStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions in status.
func (p *EtcdSnapshotPolicy) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions replaces the conditions in status.
func (p *EtcdSnapshotPolicy) SetConditions(conditions []metav1.Condition) {
	p.Status.Conditions = conditions
}

// EtcdSnapshotPolicyList is a list of EtcdSnapshotPolicies.
// +kubebuilder:object:root=true
type EtcdSnapshotPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the EtcdSnapshotPolicies.
	Items []EtcdSnapshotPolicy `json:"items"`
}
