package bootstrap

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	bootstraprender "github.com/slipwayhq/slipway/internal/kubeadm/bootstrap/render"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/policy"
)

// snapshot is the input of [decide] for one KubeadmConfig. It is read-only. observe reads it in each reconciliation,
// and read adds the fields that are nil until read if decide requests them.
type snapshot struct {
	Now time.Time
	// TTL of bootstrap tokens.
	TTL    time.Duration
	Config *bootstrapv1.KubeadmConfig
	// Owner is the Machine or MachinePool, or nil if there is none yet.
	Owner *configOwner
	// Cluster is nil if it does not exist.
	Cluster *clusterv1.Cluster
	// Connected is true if the workload cluster is reachable. Problem is the reason if not.
	Connected bool
	Problem   string

	// Written is the existing data Secret, or nil if no data was written or the Secret does not exist.
	Written *corev1.Secret
	// Deleted is true if data was written and its Secret no longer exists.
	Deleted bool
	// RenderInput is nil until read.
	RenderInput *renderInput
	// Token is the state of the token in the spec; nil until read.
	Token *tokenState
	// Lock is the lock on the initialization of the control plane; nil until read.
	Lock *initLockState
	// TokenSetByUser is true if another client has set the token in the spec.
	TokenSetByUser bool
	// Ignition is true if the feature gate for the format ignition is enabled.
	Ignition bool
	// Policy is the operator's configuration.
	Policy policy.Configuration
	// Leftovers are the Secrets of all tokens created for this KubeadmConfig; nil until read.
	Leftovers *[]corev1.Secret
}

// configOwner contains the relevant fields of the owning Machine or MachinePool. observe reads it.
type configOwner struct {
	// Kind is Machine or MachinePool.
	Kind, Name string
	// ClusterName is the name of the owner's Cluster.
	ClusterName string
	// Version of Kubernetes, such as v1.36.3; may be empty.
	Version string
	// ControlPlane is true for a control plane Machine.
	ControlPlane bool
	// Joined is true if the Machine has a Node. It is always false for a MachinePool, because further machines can
	// join.
	Joined bool
	// Deleted is true if the owner is deleted or being deleted.
	Deleted bool
	// DataSecretName is the bootstrap data Secret in the owner's spec.
	DataSecretName string
}

func (o configOwner) pool() bool { return o.Kind == kindMachinePool }

// renderInput contains the inputs of the bootstrap data besides the KubeadmConfig. read fills it in after [decide] has
// requested it.
type renderInput struct {
	// CA is the certificate bundle of the CA Secret, or nil if the Secret or its certificate does not exist.
	CA []byte
	// Authorities are the Secrets with the control plane's certificates. For other Machines, only the CA is read.
	Authorities secrets.Secrets
	// Secrets referenced by the spec.
	Secrets bootstraprender.Secrets
	// Denied maps names of Secrets to the reason why the spec must not reference them. Their content is not read.
	Denied map[string]string
	// ControlPlaneVersion for templates; may be empty.
	ControlPlaneVersion string
	// Data is the existing Secret with the name of the data Secret, or nil.
	Data *corev1.Secret
	// rendered caches the result of render, which is needed several times in a reconciliation. If it is nil, the data
	// is rendered on each use.
	rendered func() (bootstrapData, error)
}

// data returns the desired content of the data Secret. [decide] renders with it to find problems before the write, act
// writes its result, and the conditions report its error.
func (s snapshot) data() (bootstrapData, error) {
	if s.RenderInput.rendered != nil {
		return s.RenderInput.rendered()
	}
	return render(s)
}

// isNeeded reports whether deleted data must be recreated: the Machine has no Node yet and may still read it. Data
// under another name was created by another client, and the data of a pool is renewed anyway. [decide] and the
// conditions call it.
func (s snapshot) isNeeded() bool {
	return s.Deleted && !s.Owner.Joined && !s.Owner.pool() && s.dataSecretName() == s.Config.Name
}

// hasData reports whether bootstrap data exists according to the status or the owner. [decide], observe and the
// conditions call it.
func (s snapshot) hasData() bool { return s.dataSecretName() != "" }

func (s snapshot) initialized() bool {
	return ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false)
}

// initializes reports whether the machine initializes the control plane instead of joining it. [decide] calls it, and
// [render] for the choice of the payload.
func (s snapshot) initializes() bool { return s.Owner.ControlPlane && !s.initialized() }

// endpoint returns the endpoint of the control plane, which [render] writes into the bootstrap data.
func (s snapshot) endpoint() string { return s.Cluster.Spec.ControlPlaneEndpoint.String() }

// dataSecretName returns the name of the data Secret from the status, or from the owner's spec if the status was lost
// by a restore or a move. It is empty if there is no data.
func (s snapshot) dataSecretName() string {
	if name := s.Config.Status.DataSecretName; name != "" {
		return name
	}
	if s.Owner != nil {
		return s.Owner.DataSecretName
	}
	return ""
}

// token returns the token to join with, or "" if the machine discovers by file or no token is chosen yet.
func (s snapshot) token() string {
	return tokenOf(s.Config.Spec.JoinConfiguration.Discovery)
}

// tokenOwner returns the owner that the tokens of this KubeadmConfig are labelled with. act labels a new token with it,
// and read finds leftover tokens by it.
func (s snapshot) tokenOwner() TokenOwner {
	return TokenOwner{Namespace: s.Config.Namespace, Name: s.Config.Name}
}
