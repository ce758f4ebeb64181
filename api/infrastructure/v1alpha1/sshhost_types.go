package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SSHHostFinalizer delays the deletion of an SSHHost until no SSHMachine uses the host, because its connection is needed
// to clean it.
const SSHHostFinalizer = "sshhost.infrastructure.slipway.dev"

// Annotations of an SSHHost.
const (
	// CleanHostAnnotation requests the cleaning of a quarantined host. Its value is the claim ID in the record on the
	// host, or [CleanUnrecorded] if the host has none, so that the request cannot apply to anything else.
	CleanHostAnnotation = "infrastructure.slipway.dev/clean-host"
	// LastNamespaceAnnotation is the namespace that used the host last. The controller sets it. The host is offered only
	// to this namespace, unless spec.reuse allows others; "slipway hosts reinstalled" removes it after a reinstallation.
	LastNamespaceAnnotation = "infrastructure.slipway.dev/last-namespace"
)

// CleanUnrecorded is the value of [CleanHostAnnotation] for a host with a kubelet, or with what a former
// node left, that no record explains.
const CleanUnrecorded = "unrecorded"

// Condition types of an SSHHost, in addition to Deleting and Paused of Cluster API.
const (
	// AvailableCondition is true while an SSHMachine can claim the host.
	AvailableCondition = "Available"
	// ReachableCondition is true while the controller can connect to the host.
	ReachableCondition = "Reachable"
	// PreflightPassedCondition is true if the last preflight checks found nothing that prevents a node. Its message lists
	// warnings. The checks run only while nothing uses the host.
	PreflightPassedCondition = "PreflightPassed"
	// BundleInstallableCondition is true while no container runtime on the host conflicts with the one of a bundle. SSHMachines
	// with spec.bundle Managed cannot claim the host otherwise, and those with spec.bundle None only then.
	BundleInstallableCondition = "BundleInstallable"
)

// SSHSudo specifies how commands on a host get the rights of root.
// +kubebuilder:validation:Enum=Never;Always
type SSHSudo string

// Values of [SSHSudo].
const (
	// SSHSudoNever runs commands as the user, who must be root.
	SSHSudoNever SSHSudo = "Never"
	// SSHSudoAlways runs commands with sudo, which must not need a password.
	SSHSudoAlways SSHSudo = "Always"
)

// SSHReuse specifies which namespaces may use a host after it was used and cleaned.
// +kubebuilder:validation:Enum=SameNamespace;Any
type SSHReuse string

// Values of [SSHReuse].
const (
	// SSHReuseSameNamespace offers a used host only to the namespace that used it last.
	SSHReuseSameNamespace SSHReuse = "SameNamespace"
	// SSHReuseAny offers a cleaned host to all namespaces in spec.offeredTo.
	SSHReuseAny SSHReuse = "Any"
)

// SSHHostState is the state of a host.
// +kubebuilder:validation:Enum=Available;Preparing;InUse;Cleaning;Quarantined;Unreachable
type SSHHostState string

// Values of [SSHHostState].
const (
	// SSHHostAvailable: no SSHMachine uses the host, and it passed all checks.
	SSHHostAvailable SSHHostState = "Available"
	// SSHHostPreparing: an SSHMachine has claimed the host, which is not a node yet.
	SSHHostPreparing SSHHostState = "Preparing"
	// SSHHostInUse: the host is the node of an SSHMachine.
	SSHHostInUse SSHHostState = "InUse"
	// SSHHostCleaning: the host was released and is being cleaned.
	SSHHostCleaning SSHHostState = "Cleaning"
	// SSHHostQuarantined: something on the host prevents its use, or it was released by force and could not be cleaned since. The
	// controller changes nothing on it but to clean it.
	SSHHostQuarantined SSHHostState = "Quarantined"
	// SSHHostUnreachable: the controller cannot connect to the host, or the operator's configuration denies the connection.
	SSHHostUnreachable SSHHostState = "Unreachable"
)

// SSHCredentialsReference refers to a Secret in the namespace of the SSHHost.
type SSHCredentialsReference struct {
	// name of the Secret. It has the key ssh-privatekey and, for a certificate of the key, ssh-certificate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// SSHServer is the address, user and keys of an SSH server.
type SSHServer struct {
	// address is the IP address or DNS name of the SSH server.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9:][A-Za-z0-9:.-]*$`
	Address string `json:"address,omitempty"`

	// port of the SSH server.
	// +optional
	// +kubebuilder:default=22
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// user to log in as.
	// +optional
	// +kubebuilder:default=root
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_-]{0,31}$`
	User string `json:"user,omitempty"`

	// credentialsRef refers to the Secret with the private key.
	// +required
	CredentialsRef SSHCredentialsReference `json:"credentialsRef,omitempty,omitzero"`

	// hostKeys are the public keys of the server, as lines of an authorized_keys file without options. A server with
	// another key is refused: no key is trusted on first use.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	HostKeys []string `json:"hostKeys,omitempty"`
}

// SSHHostProxy are the HTTP proxies through which the container runtime of a host pulls images.
// +kubebuilder:validation:MinProperties=1
type SSHHostProxy struct {
	// http is the URL of the proxy for http requests.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.:\[\]-]+/?$`
	HTTP string `json:"http,omitempty"`

	// https is the URL of the proxy for https requests.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.:\[\]-]+/?$`
	HTTPS string `json:"https,omitempty"`

	// no are hosts, domains and ranges that are reached without a proxy.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9.*:/-]+$`
	No []string `json:"no,omitempty"`
}

// SSHHostSettings configure what the provider installs on a host. They are settings of an SSHHost, or of the SSHMachines that
// use it.
// +kubebuilder:validation:MinProperties=1
type SSHHostSettings struct {
	// proxy are the HTTP proxies through which the container runtime pulls images.
	// +optional
	Proxy SSHHostProxy `json:"proxy,omitempty,omitzero"`

	// registryMirrors are the URLs of mirrors that the container runtime tries in this order for the images of every
	// registry.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^https?://[A-Za-z0-9.:\[\]/_-]+$`
	RegistryMirrors []string `json:"registryMirrors,omitempty"`

	// additionalTrustedCAs are certificate authorities in PEM format that the container runtime trusts for registries, in
	// addition to those that the host trusts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=131072
	AdditionalTrustedCAs string `json:"additionalTrustedCAs,omitempty"`
}

// SSHHostSpec is the desired state of an SSHHost.
type SSHHostSpec struct {
	SSHServer `json:",inline"`

	// jump is the SSH server through which the host is reached. If it is not set, the controller connects directly.
	// +optional
	Jump *SSHServer `json:"jump,omitempty"`

	// nodeAddress is the IP address of the node in its cluster, if it differs from spec.address, as behind a NAT. It is
	// required if spec.address is a DNS name. If it is not set, the node has the address that spec.address was when an
	// SSHMachine claimed the host.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:Pattern=`^[0-9A-Fa-f:.]+$`
	NodeAddress string `json:"nodeAddress,omitempty"`

	// sudo specifies how commands get the rights of root: Never for the user root, Always for other users.
	// +optional
	// +kubebuilder:default=Never
	Sudo SSHSudo `json:"sudo,omitempty"`

	// failureDomain of the host, for example a rack. Control plane machines are spread over the failure domains.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// offeredTo selects the namespaces whose SSHMachines may claim the host, by the labels of the Namespace. If it is not
	// set, only the namespace of the SSHHost may; an empty selector selects all namespaces.
	// +optional
	OfferedTo *metav1.LabelSelector `json:"offeredTo,omitempty"`

	// reuse specifies which of these namespaces may claim the host after another one used it. The users of a namespace
	// have the rights of root on the host while they use it, and could leave something behind that cleaning does not find.
	// +optional
	// +kubebuilder:default=SameNamespace
	Reuse SSHReuse `json:"reuse,omitempty"`

	// maintenance prevents new claims of the host. A node that it runs stays.
	// +optional
	Maintenance *bool `json:"maintenance,omitempty"`

	// interruptible means that the machine may be taken away at any time, as a borrowed one can be.
	// +optional
	Interruptible *bool `json:"interruptible,omitempty"`

	// settings configure what the provider installs on the host. A change reaches an SSHMachine until its bootstrap data
	// starts, and then the next SSHMachine. They have no effect for an SSHMachine with bundle None.
	// +optional
	Settings SSHHostSettings `json:"settings,omitempty,omitzero"`
}

// SSHHostRecord is the record on a host of the machine that uses it.
type SSHHostRecord struct {
	// claimID of the machine.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ClaimID string `json:"claimID,omitempty"`

	// namespace of the SSHMachine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Namespace string `json:"namespace,omitempty"`

	// name of the SSHMachine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
}

// SSHHostBundle is a bundle in the cache of a host.
type SSHHostBundle struct {
	// digest of the bundle, as hexadecimal SHA-256.
	// +required
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`

	// version of Kubernetes in the bundle.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
}

// SSHHostStatus is the observed state of an SSHHost.
// +kubebuilder:validation:MinProperties=1
type SSHHostStatus struct {
	// conditions describe the state of the host. Known types: Available, Reachable, PreflightPassed,
	// BundleInstallable, Deleting, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the object that the status reflects.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state of the host.
	// +optional
	State SSHHostState `json:"state,omitempty"`

	// stateSince is the time since when the host has this state.
	// +optional
	StateSince *metav1.Time `json:"stateSince,omitempty"`

	// facts describe the host as it was when the controller was last connected to it.
	// +optional
	Facts SSHHostFacts `json:"facts,omitempty,omitzero"`

	// claim is the SSHMachine that uses the host. The controller of SSHMachines sets it, and the controller of SSHHosts removes
	// it when the host is clean.
	// +optional
	Claim *SSHHostClaim `json:"claim,omitempty"`

	// confirmedClaimID is the claim ID of the claim that was recorded on the host. The SSHMachine uses the host only then.
	// +optional
	// +kubebuilder:validation:MinLength=26
	// +kubebuilder:validation:MaxLength=26
	ConfirmedClaimID string `json:"confirmedClaimID,omitempty"`

	// record is the record on the host when the controller was last connected to it.
	// +optional
	Record *SSHHostRecord `json:"record,omitempty"`

	// lastCleaning is the checklist of the last cleaning, which the host has until its next claim.
	// +optional
	LastCleaning *SSHHostCleaningRecord `json:"lastCleaning,omitempty"`

	// lastNamespace is the namespace that used the host last.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	LastNamespace string `json:"lastNamespace,omitempty"`

	// lastNamespaceUID is the UID of the namespace that used the host last. Another namespace with the same name, for example
	// a recreated one, is not the same namespace. It is not known after a move or a restore, where namespaces have other
	// UIDs; then the name decides.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	LastNamespaceUID string `json:"lastNamespaceUID,omitempty"`

	// bundles are the bundles in the cache of the host, at most eight.
	// +optional
	// +listType=map
	// +listMapKey=digest
	// +kubebuilder:validation:MaxItems=8
	Bundles []SSHHostBundle `json:"bundles,omitempty"`
}

// SSHHost is a machine with an SSH server that SSHMachines can use as a node. It is an object of the operator, in a
// namespace with the Secrets of the hosts.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=sshhosts,shortName=sshh,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.address`,description="Address of the SSH server"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="State of the host"
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.stateSince`,description="Time since when the host has this state"
// +kubebuilder:printcolumn:name="Namespace of user",type=string,JSONPath=`.status.claim.namespace`,description="Namespace of the SSHMachine that uses the host"
// +kubebuilder:printcolumn:name="Machine",type=string,JSONPath=`.status.claim.name`,description="SSHMachine that uses the host"
// +kubebuilder:printcolumn:name="CPUs",type=integer,JSONPath=`.status.facts.cpus`,description="Number of processors",priority=10
// +kubebuilder:printcolumn:name="Memory MiB",type=integer,JSONPath=`.status.facts.memoryMiB`,description="Size of the memory",priority=10
// +kubebuilder:printcolumn:name="OS",type=string,JSONPath=`.status.facts.osImage`,description="Distribution",priority=10
// +kubebuilder:printcolumn:name="Failure Domain",type=string,JSONPath=`.spec.failureDomain`,description="Failure domain of the host",priority=10
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type SSHHost struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.user == 'root' || self.sudo == 'Always'",message="sudo must be Always for a user other than root"
	Spec SSHHostSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status SSHHostStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions in status.
func (h *SSHHost) GetConditions() []metav1.Condition { return h.Status.Conditions }

// SetConditions replaces the conditions in status.
func (h *SSHHost) SetConditions(conditions []metav1.Condition) { h.Status.Conditions = conditions }

// SSHHostList is a list of SSHHosts.
// +kubebuilder:object:root=true
type SSHHostList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the SSHHosts.
	Items []SSHHost `json:"items"`
}
