package v1alpha1

// Security configures the security of a workload cluster's API. kube-apiserver reads the settings from files that
// Slipway writes: no field contains the name of a file, a socket or a command. A change restarts the control plane in
// place.
type Security struct {
	// hardening Restricted sets defaults for the following fields if they are unset: audit {}, encryption {},
	// podSecurity with enforce, audit and warn of the standard restricted, and kubeletServingCertificates Required. In
	// addition, the API server only supports TLS 1.3, limits Events to 50 per second in each namespace, rejects
	// Services with external IPs, and does not extend the expiration of ServiceAccount tokens; apiServer.extraArgs can
	// override this. Nodes that joined before must be replaced, as with kubeletServingCertificates. It has no effect on
	// simulated control planes. If unset, each field has its own default.
	// +optional
	Hardening Hardening `json:"hardening,omitempty"`

	// audit makes kube-apiserver record requests in the control plane's folder on the host: at most 5 files of 20 MiB,
	// which the operator of the host can read. If unset, no requests are recorded.
	// +optional
	Audit *Audit `json:"audit,omitempty"`

	// encryption encrypts Secrets and other resources in etcd with keys in the Secret <cluster>-encryption, which is
	// created if it does not exist. Existing data is encrypted when it is next written. If this field is removed,
	// encrypted data remains readable with this Secret, which must not be deleted. If unset, nothing is encrypted.
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`

	// authentication configures the issuers of tokens that authenticate users, in addition to client certificates and
	// ServiceAccounts.
	// +optional
	Authentication *Authentication `json:"authentication,omitempty"`

	// podSecurity is the Pod Security Standard of namespaces without a corresponding label. If unset, all Pods are
	// allowed.
	// +optional
	PodSecurity *PodSecurity `json:"podSecurity,omitempty"`

	// kubeletServingCertificates selects the signer of the certificates with which kubelets serve logs, exec and
	// metrics. Signed: kubelets of nodes that join from now on request a certificate signed by the cluster's CA; it is
	// approved only for the Node of a Machine, and for names and addresses of this Machine. Required: in addition, the
	// API server only connects to kubelets with such a certificate; nodes that joined before Signed was set must be
	// replaced first. If unset, kubelets use self-signed certificates, and the API server accepts any. It has no effect
	// on simulated control planes.
	// +optional
	KubeletServingCertificates KubeletServingCertificates `json:"kubeletServingCertificates,omitempty"`
}

// Hardening is a set of stricter defaults.
// +kubebuilder:validation:Enum=Restricted
type Hardening string

// HardeningRestricted is for clusters whose users are not trusted.
const HardeningRestricted Hardening = "Restricted"

// Effective returns the settings including the defaults set by Hardening.
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

// KubeletServingCertificates selects the signer of the serving certificates of kubelets.
// +kubebuilder:validation:Enum=Signed;Required
type KubeletServingCertificates string

// Values of KubeletServingCertificates.
const (
	// KubeletServingSigned makes new kubelets request certificates signed by the cluster's CA.
	KubeletServingSigned KubeletServingCertificates = "Signed"
	// KubeletServingRequired additionally makes the API server require them.
	KubeletServingRequired KubeletServingCertificates = "Required"
)

// Audit configures the recording of requests by kube-apiserver.
type Audit struct {
	// policy determines which requests are recorded, and in which detail. By default all requests are recorded without
	// their contents, except for reads by Kubernetes components, for events and Leases, and for health and discovery.
	// +optional
	Policy *AuditPolicy `json:"policy,omitempty"`
}

// AuditPolicy has the fields of Policy of audit.k8s.io/v1.
type AuditPolicy struct {
	// rules are compared with a request in order; the first match determines the level. A request that matches no rule
	// is not recorded.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Rules []AuditRule `json:"rules,omitempty"`

	// omitStages are request stages that are not recorded.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	OmitStages []AuditStage `json:"omitStages,omitempty"`

	// omitManagedFields omits managed fields from recorded objects. Defaults to false.
	// +optional
	OmitManagedFields bool `json:"omitManagedFields,omitempty"`
}

// AuditLevel is the level of detail of a recorded request.
// +kubebuilder:validation:Enum=None;Metadata;Request;RequestResponse
type AuditLevel string

// AuditStage is the stage at which a request is recorded.
// +kubebuilder:validation:Enum=RequestReceived;ResponseStarted;ResponseComplete;Panic
type AuditStage string

// AuditRule sets the audit level of matching requests. An empty list matches everything.
type AuditRule struct {
	// level is the level of detail: None, Metadata (user, time, resource and verb), Request (also the object in the
	// request) or RequestResponse (also the object in the response). Recorded objects include the content of Secrets.
	// +required
	Level AuditLevel `json:"level,omitempty"`

	// users are user names.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Users []string `json:"users,omitempty"`

	// userGroups are groups of users. It matches if the user is in at least one of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	UserGroups []string `json:"userGroups,omitempty"`

	// verbs are request verbs, for example get, list, create or delete.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Verbs []string `json:"verbs,omitempty"`

	// resources are resources by API group.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Resources []AuditResources `json:"resources,omitempty"`

	// namespaces are names of namespaces; the empty name represents cluster-scoped objects.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`

	// nonResourceURLs are URL paths that do not refer to resources, for example /metrics or /healthz*. A rule with them
	// has neither resources nor namespaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`

	// omitStages are request stages that are not recorded, in addition to the policy's omitStages.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	OmitStages []AuditStage `json:"omitStages,omitempty"`

	// omitManagedFields overrides omitManagedFields of the policy.
	// +optional
	OmitManagedFields *bool `json:"omitManagedFields,omitempty"`
}

// AuditResources are resources of one API group.
// +kubebuilder:validation:MinProperties=1
type AuditResources struct {
	// group is the name of the API group. Unset means the core group; * means all groups.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// resources are resource names, for example pods, pods/log, pods/* or *. Unset means all resources.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Resources []string `json:"resources,omitempty"`

	// resourceNames are names of objects. They require resources to be set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// EncryptionProvider is an encryption algorithm.
// +kubebuilder:validation:Enum=secretbox;aesgcm;aescbc
type EncryptionProvider string

// Encryption providers. None of them requires an external process.
const (
	EncryptionSecretbox EncryptionProvider = "secretbox"
	EncryptionAESGCM    EncryptionProvider = "aesgcm"
	EncryptionAESCBC    EncryptionProvider = "aescbc"
)

// Encryption configures the encryption of data in etcd.
type Encryption struct {
	// provider is the algorithm for newly written objects: secretbox (XSalsa20 and Poly1305), aesgcm or aescbc. Data
	// encrypted with another one remains readable. Kubernetes advises against aesgcm with keys that are not rotated,
	// and against aescbc. Defaults to secretbox.
	// +optional
	// +kubebuilder:default=secretbox
	Provider EncryptionProvider `json:"provider,omitempty"`

	// resources are encrypted in addition to Secrets, for example configmaps or widgets.example.com.
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

// PodSecurity configures the allowed Pods in namespaces without a corresponding label. The namespace kube-system, in
// which the network of the cluster runs, is always exempt.
// +kubebuilder:validation:MinProperties=1
type PodSecurity struct {
	// enforce rejects Pods that violate the standard.
	// +optional
	Enforce PodSecurityStandard `json:"enforce,omitempty,omitzero"`

	// audit records violations of the standard in the audit log.
	// +optional
	Audit PodSecurityStandard `json:"audit,omitempty,omitzero"`

	// warn returns warnings about violations of the standard to clients that create Pods.
	// +optional
	Warn PodSecurityStandard `json:"warn,omitempty,omitzero"`

	// exemptions are exempt from all standards.
	// +optional
	Exemptions PodSecurityExemptions `json:"exemptions,omitempty,omitzero"`
}

// PodSecurityStandard is a Pod Security Standard as defined by a Kubernetes version.
type PodSecurityStandard struct {
	// level is privileged, baseline or restricted.
	// +required
	Level PodSecurityLevel `json:"level,omitempty"`

	// version is the Kubernetes minor version that defines the standard, for example v1.36, or latest. Defaults to
	// latest.
	// +optional
	// +kubebuilder:default=latest
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^(latest|v1\.(0|[1-9][0-9]*))$`
	Version string `json:"version,omitempty"`
}

// PodSecurityExemptions are exempt from all standards.
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

	// namespaces are exempt in addition to kube-system.
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
