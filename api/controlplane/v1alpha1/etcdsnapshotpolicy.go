package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TakeSnapshotAnnotation on an EtcdSnapshotPolicy asks for a snapshot of one of its Clusters now: its value is the name of the
// snapshot, <cluster>-<time as 20261125T120000Z>. The controller removes it when the snapshot is there, or cannot be taken.
const TakeSnapshotAnnotation = "controlplane.slipway.dev/take-snapshot"

// Condition types of an EtcdSnapshotPolicy, besides Paused.
const (
	// ScheduleValidCondition is true when the schedule can be read.
	ScheduleValidCondition = "ScheduleValid"

	// StoreAvailableCondition is true when the store was reachable with its keys when it was last used.
	StoreAvailableCondition = "StoreAvailable"

	// SnapshotsUpToDateCondition is true when every Cluster has the snapshots that were due.
	SnapshotsUpToDateCondition = "SnapshotsUpToDate"

	// ReadyCondition is true when all of the others are.
	ReadyCondition = "Ready"
)

// DefaultSnapshotCount is how many snapshots of a Cluster are kept where nothing is said.
const DefaultSnapshotCount = 7

// Limits of an EtcdSnapshotPolicy.
const (
	// MaxSnapshotClusters is how many Clusters one policy has at most.
	MaxSnapshotClusters = 100
	// MaxListedSnapshots is how many snapshots of one Cluster its status lists, the newest.
	MaxListedSnapshots = 10
)

// EtcdSnapshotPolicySpec is the desired state of an EtcdSnapshotPolicy.
// +kubebuilder:validation:XValidation:rule="has(self.clusterName) != has(self.clusterSelector)",message="exactly one of clusterName and clusterSelector must be set"
type EtcdSnapshotPolicySpec struct {
	// clusterName is the name of the one Cluster of this namespace of which snapshots are taken.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// clusterSelector selects the Clusters of this namespace of which snapshots are taken, by their labels; an empty one selects
	// all. At most 100 Clusters have snapshots by one policy, the first by name.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// schedule is when snapshots are taken, in UTC: five fields as of cron (minute, hour, day of month, month, day of week), or
	// @hourly, @daily, @weekly or @monthly. Of times that were missed, the last is made up for. At most one snapshot of a
	// Cluster is taken each five minutes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Schedule string `json:"schedule,omitempty"`

	// suspend, while true, keeps snapshots from being taken and removed.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// retention says which snapshots are removed.
	// +optional
	Retention SnapshotRetention `json:"retention,omitempty,omitzero"`

	// destination is where snapshots are stored.
	// +required
	Destination SnapshotDestination `json:"destination,omitempty,omitzero"`

	// encryption encrypts snapshots. They have all Secrets of the workload cluster in them.
	// +optional
	Encryption SnapshotEncryption `json:"encryption,omitempty,omitzero"`
}

// SnapshotRetention says which snapshots of a Cluster are removed: what exceeds the count, and what is older than the age.
// The newest is never removed.
// +kubebuilder:validation:MinProperties=1
type SnapshotRetention struct {
	// count is how many are kept. Defaults to 7.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	Count int32 `json:"count,omitempty"`

	// maximumAgeHours is how old, in hours, a snapshot may be. Unset, any.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=87600
	MaximumAgeHours int32 `json:"maximumAgeHours,omitempty"`
}

// SnapshotDestination is where snapshots are stored.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type SnapshotDestination struct {
	// folder stores them on the host of the manager.
	// +optional
	Folder *SnapshotFolder `json:"folder,omitempty"`

	// s3 stores them in an S3-compatible store.
	// +optional
	S3 *SnapshotBucket `json:"s3,omitempty"`
}

// SnapshotFolder is a folder on the host of the manager, with a folder of each namespace in it.
type SnapshotFolder struct {
	// path is a folder that the operator allows (snapshots.folders in the configuration file), or one below it. Defaults to the
	// folder snapshots of the data directory.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`
}

// SnapshotBucket is a bucket of an S3-compatible store.
type SnapshotBucket struct {
	// endpoint is the host of the store, with a port where it is not 443 (or 80 with insecure). The operator has to allow it
	// (snapshots.endpoints in the configuration file).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Endpoint string `json:"endpoint,omitempty"`

	// bucket is the name of the bucket, which exists.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	Bucket string `json:"bucket,omitempty"`

	// prefix is put before the names of snapshots, with a slash between them. Defaults to none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`
	Prefix string `json:"prefix,omitempty"`

	// region of the bucket. Defaults to us-east-1.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	Region string `json:"region,omitempty"`

	// insecure, while true, uses HTTP: who is on the way can read and change snapshots.
	// +optional
	Insecure *bool `json:"insecure,omitempty"`

	// certificateAuthority are certificates in PEM form that verify the store's own. Defaults to those of the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CertificateAuthority string `json:"certificateAuthority,omitempty"`

	// credentialsSecretName is the name of a Secret of this namespace with accessKeyID and secretAccessKey.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CredentialsSecretName string `json:"credentialsSecretName,omitempty"`
}

// SnapshotEncryption encrypts snapshots with age.
// +kubebuilder:validation:MinProperties=1
type SnapshotEncryption struct {
	// recipients are those of age who can read snapshots, age1… each. To restore one, the identity of one of them is needed.
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
	// conditions tell about the state of the policy. Known types: ScheduleValid, StoreAvailable, SnapshotsUpToDate, Ready, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the object that the status was made from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastSnapshotTime is when the newest snapshot was taken.
	// +optional
	LastSnapshotTime metav1.Time `json:"lastSnapshotTime,omitempty,omitzero"`

	// nextSnapshotTime is when the next snapshots are due.
	// +optional
	NextSnapshotTime metav1.Time `json:"nextSnapshotTime,omitempty,omitzero"`

	// clusters tell about each Cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Clusters []ClusterSnapshots `json:"clusters,omitempty"`
}

// ClusterSnapshots tell about the snapshots of one Cluster.
type ClusterSnapshots struct {
	// name of the Cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// count is how many snapshots the store has of it. Unset is none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count,omitempty"`

	// snapshots are the newest of them, at most 10, the newest first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Snapshots []EtcdSnapshot `json:"snapshots,omitempty"`

	// lastFailureTime is when a snapshot of it failed; unset after one that did not.
	// +optional
	LastFailureTime metav1.Time `json:"lastFailureTime,omitempty,omitzero"`

	// message says why there is no snapshot of it that was due.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// EtcdSnapshot is a snapshot of etcd in a store.
type EtcdSnapshot struct {
	// name of the snapshot.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// time is when it was taken.
	// +required
	Time metav1.Time `json:"time,omitempty,omitzero"`

	// revision of etcd.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Revision int64 `json:"revision,omitempty"`

	// bytes is its size before it was encrypted.
	// +required
	// +kubebuilder:validation:Minimum=1
	Bytes int64 `json:"bytes,omitempty"`

	// version of Kubernetes that wrote the data, where that is known.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// encrypted is true for a snapshot that is encrypted with age.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// EtcdSnapshotPolicy takes snapshots of the etcd of workload clusters on a schedule, and removes old ones: of hosted control
// planes, and of those on machines that kubeadm made.
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
