package v1alpha1

// Security is what guards the API of a workload cluster. kube-apiserver reads it from files, which Slipway writes: nothing
// here names a file, a socket or a command. A change restarts the control plane in place.
type Security struct {
	// hardening Restricted sets the fields below that are unset: audit to {}, encryption to {}, podSecurity to enforce, audit and warn
	// of the standard restricted, and kubeletServingCertificates to Required. Besides, the API server speaks TLS 1.3 alone, limits
	// Events to 50 a second for each namespace, refuses Services with external IPs, and does not extend the life of tokens of
	// ServiceAccounts; apiServer.extraArgs can say otherwise. Nodes that joined before have to be replaced, as with
	// kubeletServingCertificates. Without effect on simulated control planes. Unset, each field is by itself.
	// +optional
	Hardening Hardening `json:"hardening,omitempty"`

	// audit makes kube-apiserver record requests in the control plane's folder on the host: at most 5 files of 20 MiB,
	// which the operator of the host can read. Unset, nothing is recorded.
	// +optional
	Audit *Audit `json:"audit,omitempty"`

	// encryption encrypts Secrets, and other resources, in etcd with keys in the Secret <cluster>-encryption, which is
	// created where it is missing. What is stored already is encrypted when it is next written. When this field is removed,
	// what is encrypted stays readable with that Secret, which must not be deleted. Unset, nothing is encrypted.
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`

	// authentication says whose tokens identify users, besides client certificates and ServiceAccounts.
	// +optional
	Authentication *Authentication `json:"authentication,omitempty"`

	// podSecurity is the Pod Security Standard of namespaces that have no label for it. Unset, all Pods are allowed.
	// +optional
	PodSecurity *PodSecurity `json:"podSecurity,omitempty"`

	// kubeletServingCertificates says by whom the certificates are signed with which kubelets serve logs, exec and metrics.
	// Signed: kubelets of nodes that join from now on request one of the cluster's authority; it is approved for the Node of a
	// Machine, and for names and addresses of that Machine alone. Required: the API server also connects to no kubelet that
	// has another one; nodes that joined before Signed have to be replaced first. Unset, kubelets sign their own, and the API
	// server takes any. Without effect on simulated control planes.
	// +optional
	KubeletServingCertificates KubeletServingCertificates `json:"kubeletServingCertificates,omitempty"`
}

// Hardening is a set of stricter defaults.
// +kubebuilder:validation:Enum=Restricted
type Hardening string

// HardeningRestricted is for clusters whose users are not trusted.
const HardeningRestricted Hardening = "Restricted"

// Effective returns the settings with what Hardening sets of those that are unset.
func (s Security) Effective() Security {
	if s.Hardening != HardeningRestricted {
		return s
	}
	if s.Audit == nil {
		s.Audit = &Audit{}
	}
	if s.Encryption == nil {
		s.Encryption = &Encryption{}
	}
	if s.PodSecurity == nil {
		restricted := PodSecurityStandard{Level: "restricted", Version: "latest"}
		s.PodSecurity = &PodSecurity{Enforce: restricted, Audit: restricted, Warn: restricted}
	}
	if s.KubeletServingCertificates == "" {
		s.KubeletServingCertificates = KubeletServingRequired
	}
	return s
}

// KubeletServingCertificates says by whom the serving certificates of kubelets are signed.
// +kubebuilder:validation:Enum=Signed;Required
type KubeletServingCertificates string

// Values of KubeletServingCertificates.
const (
	// KubeletServingSigned has new kubelets request certificates of the cluster's authority.
	KubeletServingSigned KubeletServingCertificates = "Signed"
	// KubeletServingRequired also has the API server insist on them.
	KubeletServingRequired KubeletServingCertificates = "Required"
)

// Audit makes kube-apiserver record requests.
type Audit struct {
	// policy says which requests are recorded, and how much of them. By default these are all, without their contents,
	// except for reads by the components of Kubernetes, for events and Leases, and for health and discovery.
	// +optional
	Policy *AuditPolicy `json:"policy,omitempty"`
}

// AuditPolicy has the fields of Policy of audit.k8s.io/v1.
type AuditPolicy struct {
	// rules are compared with a request in their order; the first that matches decides. A request that matches none is not
	// recorded.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Rules []AuditRule `json:"rules,omitempty"`

	// omitStages are stages of requests that are not recorded.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	OmitStages []AuditStage `json:"omitStages,omitempty"`

	// omitManagedFields leaves managed fields out of contents. Defaults to false.
	// +optional
	OmitManagedFields bool `json:"omitManagedFields,omitempty"`
}

// AuditLevel is how much of a request is recorded.
// +kubebuilder:validation:Enum=None;Metadata;Request;RequestResponse
type AuditLevel string

// AuditStage is how far a request is when it is recorded.
// +kubebuilder:validation:Enum=RequestReceived;ResponseStarted;ResponseComplete;Panic
type AuditStage string

// AuditRule says of the requests that it matches how much is recorded. An empty list matches everything.
type AuditRule struct {
	// level is how much is recorded: None, Metadata (who, what, when), Request (and the object sent) or RequestResponse
	// (and the object answered). Objects that are recorded include the content of Secrets.
	// +required
	Level AuditLevel `json:"level,omitempty"`

	// users are names of users.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Users []string `json:"users,omitempty"`

	// userGroups are groups of users, of which one has to be the user's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	UserGroups []string `json:"userGroups,omitempty"`

	// verbs are for example get, list, create or delete.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Verbs []string `json:"verbs,omitempty"`

	// resources are kinds of objects, by their API group.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Resources []AuditResources `json:"resources,omitempty"`

	// namespaces are names of namespaces; the empty name stands for objects that are in none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`

	// nonResourceURLs are paths that are not of objects, for example /metrics or /healthz*. A rule with them has neither
	// resources nor namespaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`

	// omitStages are stages that are not recorded, besides those of the policy.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	OmitStages []AuditStage `json:"omitStages,omitempty"`

	// omitManagedFields takes the place of that of the policy.
	// +optional
	OmitManagedFields *bool `json:"omitManagedFields,omitempty"`
}

// AuditResources are kinds of objects of one API group.
// +kubebuilder:validation:MinProperties=1
type AuditResources struct {
	// group is the name of the API group. Unset is the core group; * is all.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// resources are for example pods, pods/log, pods/* or *. Unset is all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Resources []string `json:"resources,omitempty"`

	// resourceNames are names of objects. They need resources.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// EncryptionProvider is how objects are encrypted.
// +kubebuilder:validation:Enum=secretbox;aesgcm;aescbc
type EncryptionProvider string

// Providers of encryption, none of which asks another process.
const (
	EncryptionSecretbox EncryptionProvider = "secretbox"
	EncryptionAESGCM    EncryptionProvider = "aesgcm"
	EncryptionAESCBC    EncryptionProvider = "aescbc"
)

// Encryption encrypts what is stored in etcd.
type Encryption struct {
	// provider is how objects are encrypted when they are written: secretbox (XSalsa20 and Poly1305), aesgcm or aescbc. What
	// another one has encrypted stays readable. Kubernetes advises against aesgcm with keys that are not rotated, and against
	// aescbc. Defaults to secretbox.
	// +optional
	// +kubebuilder:default=secretbox
	Provider EncryptionProvider `json:"provider,omitempty"`

	// resources are encrypted besides Secrets, for example configmaps or widgets.example.com.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Resources []string `json:"resources,omitempty"`
}

// PodSecurityLevel is a Pod Security Standard.
// +kubebuilder:validation:Enum=privileged;baseline;restricted
type PodSecurityLevel string

// PodSecurity is which Pods are allowed in namespaces that do not say so by their labels. Namespace kube-system, where the
// network of the cluster runs, is always exempt.
// +kubebuilder:validation:MinProperties=1
type PodSecurity struct {
	// enforce refuses Pods that do not keep to the standard.
	// +optional
	Enforce PodSecurityStandard `json:"enforce,omitempty,omitzero"`

	// audit records in the audit log that Pods do not keep to the standard.
	// +optional
	Audit PodSecurityStandard `json:"audit,omitempty,omitzero"`

	// warn tells those who create Pods that these do not keep to the standard.
	// +optional
	Warn PodSecurityStandard `json:"warn,omitempty,omitzero"`

	// exemptions are for whom no standard holds.
	// +optional
	Exemptions PodSecurityExemptions `json:"exemptions,omitempty,omitzero"`
}

// PodSecurityStandard is a standard as a version of Kubernetes defines it.
type PodSecurityStandard struct {
	// level is privileged, baseline or restricted.
	// +required
	Level PodSecurityLevel `json:"level,omitempty"`

	// version is the minor version of Kubernetes whose definition holds, for example v1.36, or latest. Defaults to latest.
	// +optional
	// +kubebuilder:default=latest
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^(latest|v1\.(0|[1-9][0-9]*))$`
	Version string `json:"version,omitempty"`
}

// PodSecurityExemptions are for whom no standard holds.
// +kubebuilder:validation:MinProperties=1
type PodSecurityExemptions struct {
	// usernames are users whose requests are exempt.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Usernames []string `json:"usernames,omitempty"`

	// namespaces are exempt, besides kube-system.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`

	// runtimeClasses are RuntimeClasses whose Pods are exempt.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	RuntimeClasses []string `json:"runtimeClasses,omitempty"`
}
