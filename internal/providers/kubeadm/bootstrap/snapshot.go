package bootstrap

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/authority"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/discovery"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/initlock"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/payload"
)

// Snapshot is everything that Decide reads. Nothing in it is changed.
type Snapshot struct {
	Now time.Time
	// TTL of bootstrap tokens.
	TTL    time.Duration
	Config *bootstrapv1.KubeadmConfig
	// Owner is the Machine or MachinePool; nil: none yet.
	Owner *Owner
	// Cluster is nil where it does not exist.
	Cluster *clusterv1.Cluster
	// Connected: the workload cluster can be reached; Problem says why not.
	Connected bool
	Problem   string

	// Written is the data Secret, where data was made before; nil: it was not, or the Secret does not exist.
	Written *corev1.Secret
	// Deleted: data was made before, and its Secret does not exist any more.
	Deleted bool
	// Material is nil until read.
	Material *Material
	// Token is the state of the token in the spec; nil until read.
	Token *discovery.State
	// Lock is the lock on the initialization of the control plane; nil until read.
	Lock *initlock.State
	// Given: another client than this controller has set the token in the spec.
	Given bool
	// Ignition: the feature gate of that format is enabled.
	Ignition bool
	// Policy is what the operator allows.
	Policy policy.Configuration
	// Leftovers are the Secrets of all tokens created for this KubeadmConfig; nil until read.
	Leftovers *[]corev1.Secret
}

// Owner is what a KubeadmConfig needs to know of its Machine or MachinePool.
type Owner struct {
	// Kind is Machine or MachinePool.
	Kind, Name string
	// ClusterName it belongs to.
	ClusterName string
	// Version of Kubernetes, such as v1.36.3; may be empty.
	Version string
	// ControlPlane: a Machine of the control plane.
	ControlPlane bool
	// Joined: the Machine has a Node. Never true for a MachinePool, which may always get another.
	Joined bool
	// Ending: it is being deleted, or gone.
	Ending bool
	// DataSecretName it uses already.
	DataSecretName string
}

// pool reports whether the owner is a MachinePool.
func (o Owner) pool() bool { return o.Kind == kindMachinePool }

// Material is what bootstrap data is made from besides the KubeadmConfig.
type Material struct {
	// CA is the bundle of the cluster's CA Secret; nil: there is no such Secret, or it has no certificate.
	CA []byte
	// Authorities are the Secrets of the control plane's certificates; read for its Machines alone.
	Authorities authority.Found
	// Secrets that the spec refers to.
	Secrets payload.Secrets
	// Denied are reasons why the spec may not refer to a Secret, by name; the content of such a Secret is not read.
	Denied map[string]string
	// ControlPlaneVersion for templates; may be empty.
	ControlPlaneVersion string
	// Data is the Secret with the name of the data Secret; nil: there is none.
	Data *corev1.Secret
	// rendered is the result of render for this snapshot, computed once: it is read more than once in a
	// pass. Nil: it is made when it is needed.
	rendered func() (Data, error)
}

// data is what is to be in the data Secret.
func (s Snapshot) data() (Data, error) {
	if s.Material.rendered != nil {
		return s.Material.rendered()
	}
	return render(s)
}

// isNeeded reports whether data that was deleted is made again: its Machine has no Node yet, so that it may still have to be read. Data
// under another name was made by another client, and data of a pool is renewed anyway.
func (s Snapshot) isNeeded() bool {
	return s.Deleted && !s.Owner.Joined && !s.Owner.pool() && s.dataSecretName() == s.Config.Name
}

// made reports whether bootstrap data exists and the status or the owner says so.
func (s Snapshot) made() bool { return s.dataSecretName() != "" }

// initialized reports whether the control plane of the Cluster is.
func (s Snapshot) initialized() bool {
	return isTrue(s.Cluster.Status.Initialization.ControlPlaneInitialized)
}

// initializes reports whether the machine makes the control plane, instead of joining it.
func (s Snapshot) initializes() bool { return s.Owner.ControlPlane && !s.initialized() }

// endpoint of the API server as host:port.
func (s Snapshot) endpoint() string { return s.Cluster.Spec.ControlPlaneEndpoint.String() }

// dataSecretName is the name that is reported: what was reported before, else what the owner uses already
// (a status does not survive a restore or a move, a spec does), else none.
func (s Snapshot) dataSecretName() string {
	if name := s.Config.Status.DataSecretName; name != "" {
		return name
	}
	if s.Owner != nil {
		return s.Owner.DataSecretName
	}
	return ""
}

// ending reports whether no one needs the bootstrap data any more.
func (s Snapshot) ending() bool { return s.Owner.Ending }

// token returns the token to join with, or "" where the machine discovers by a file or none is chosen.
func (s Snapshot) token() string {
	return discovery.TokenOf(s.Config.Spec.JoinConfiguration.Discovery)
}

// tokenOwner is how the tokens of this KubeadmConfig are marked.
func (s Snapshot) tokenOwner() discovery.Owner {
	return discovery.Owner{Namespace: s.Config.Namespace, Name: s.Config.Name}
}
