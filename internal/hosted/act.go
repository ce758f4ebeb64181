package hosted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// unwatchedRecheck is the requeue delay for changes that are not covered by a watch.
const unwatchedRecheck = 100 * time.Millisecond

// The actions of the controller. All of them are idempotent.
type (
	// CreateAuthority creates the Secret of one of the cluster's CAs or key pairs.
	CreateAuthority struct {
		Purpose Purpose
		Cluster string
	}
	// CreateKeys creates the Secret with the keys for encryption at rest.
	CreateKeys struct{ Cluster string }
	// WriteKubeconfig creates or replaces the cluster's kubeconfig.
	WriteKubeconfig struct{ Cluster, Why string }
	// OwnSecret restores the control plane as the owner of a Secret of the cluster.
	OwnSecret struct {
		Purpose Purpose
		Cluster string
	}
	// StartProcess starts the control plane, or restarts it with another configuration.
	StartProcess struct {
		Version, Why string
		// Empty means that the control plane had data, which is lost.
		Empty bool
	}
	// ApplyAddons applies the objects that nodes need to the workload cluster.
	ApplyAddons struct{ Hash string }
	// NoteInitialized records in an annotation that the control plane was initialized.
	NoteInitialized struct{}
	// ReserveEndpoint chooses the endpoint of the control plane.
	ReserveEndpoint struct{}
	// ChangeProcess applies a change to a running control plane that its backend reports as pending.
	ChangeProcess struct{ What string }
	// StageRestore starts to fetch the snapshot for a restore.
	StageRestore struct{ Snapshot string }
	// FinishRestore removes the annotation that requested a restore.
	FinishRestore struct{ Snapshot string }
	// RemoveProcess stops the control plane and deletes its data.
	RemoveProcess struct{}
)

func (a CreateAuthority) String() string {
	return fmt.Sprintf("create Secret %s: the cluster has no such authority yet", a.Purpose.SecretName(a.Cluster))
}
func (a CreateKeys) String() string {
	return fmt.Sprintf("create Secret %s: data in etcd is to be encrypted and there are no keys yet", PurposeEncryption.SecretName(a.Cluster))
}
func (a WriteKubeconfig) String() string {
	return fmt.Sprintf("write Secret %s: %s", PurposeKubeconfig.SecretName(a.Cluster), a.Why)
}
func (a OwnSecret) String() string {
	return fmt.Sprintf("own Secret %s: it lost its owner, so it would stay behind", a.Purpose.SecretName(a.Cluster))
}
func (a StartProcess) String() string {
	return fmt.Sprintf("start the control plane at %s: %s", a.Version, a.Why)
}
func (a ApplyAddons) String() string {
	return "apply what nodes need to the workload cluster, revision " + a.Hash
}
func (NoteInitialized) String() string {
	return "note in an annotation that the control plane was initialized: a restore may lose its status"
}
func (ReserveEndpoint) String() string {
	return "choose the control plane endpoint: the infrastructure provides none for such a control plane"
}
func (a ChangeProcess) String() string { return a.What }
func (a StageRestore) String() string {
	return "fetch snapshot " + a.Snapshot + ": it is to be restored"
}
func (a FinishRestore) String() string {
	return "remove the request for a restore: the API server answers with snapshot " + a.Snapshot
}
func (RemoveProcess) String() string {
	return "stop the control plane and remove its data: it is deleted"
}

func (c *Controller) act(ctx context.Context, s Snapshot, action reconciler.Action) error {
	b, err := c.backendOf(s.Plane)
	if err != nil {
		return err
	}
	switch a := action.(type) {
	case CreateAuthority:
		data, err := secrets.Generate(a.Purpose, secrets.Keys{}, s.Now)
		if err != nil {
			return err
		}
		return c.writer.Create(ctx, newSecret(s, a.Purpose, data))
	case CreateKeys:
		return c.writer.Create(ctx, newSecret(s, PurposeEncryption, componentconfig.NewKeys()))
	case WriteKubeconfig:
		return c.writeKubeconfig(ctx, s)
	case OwnSecret:
		return c.writer.Patch(ctx, s.Secrets[a.Purpose], ownerOf(s.Plane).Adopt)
	case StartProcess, ChangeProcess:
		content, err := files(s)
		if err != nil {
			return err
		}
		return b.ControlPlanes.Start(ctx, nameOf(s.Plane), configOf(s, endpointOf(s)), content)
	case ApplyAddons:
		return c.applyAddons(ctx, s)
	case NoteInitialized:
		return c.writer.Patch(ctx, s.Plane, func(o client.Object) {
			metav1.SetMetaDataAnnotation(&o.(*hostedv1.HostedControlPlane).ObjectMeta, hostedv1.InitializedAnnotation, "true")
		})
	case ReserveEndpoint:
		wanted := endpointOf(s)
		endpoint, err := b.Endpoints.Reserve(ctx, nameOf(s.Plane), wanted)
		if err != nil || wanted.IsValid() || !endpoint.IsValid() {
			return err
		}
		return c.writer.Patch(ctx, s.Plane, func(o client.Object) {
			o.(*hostedv1.HostedControlPlane).Spec.ControlPlaneEndpoint = endpoint
		})
	case StageRestore:
		c.stageRestore(s, b)
		return nil // the end of the job triggers the next reconciliation
	case FinishRestore:
		return c.writer.Patch(ctx, s.Plane, func(o client.Object) { kube.Annotate(o, hostedv1.RestoreAnnotation, nil) })
	case StopProcess:
		return b.Stop(ctx, nameOf(s.Plane)) // only backends that can stop a control plane support quiescing
	case RemoveProcess:
		c.addons.Forget(nameOf(s.Plane))
		return b.ControlPlanes.Remove(ctx, nameOf(s.Plane))
	}
	return fault.New(fault.Bug, "UnknownAction", "the hosted control plane controller does not know how to %s", action)
}

// addonTimeout is the timeout of one request to the workload cluster.
const addonTimeout = 10 * time.Second

// applyAddons connects to the workload cluster directly, because the shared connection may not exist yet. The
// request limits are the same.
func (c *Controller) applyAddons(ctx context.Context, s Snapshot) error {
	config, err := access(s)
	if err != nil {
		return err
	}
	c.limitCalls(config, s.Cluster)
	return c.applyObjects(ctx, config, addonsOf(s, endpointOf(s)))
}

// limitCalls makes requests share the rate limiter of the cluster, if there is one.
func (c *Controller) limitCalls(config *rest.Config, cluster *clusterv1.Cluster) {
	if c.workloads != nil {
		config.Wrap(c.workloads.LimitCalls(client.ObjectKeyFromObject(cluster)))
	}
}

func (c *Controller) writeKubeconfig(ctx context.Context, s Snapshot) error {
	data, err := newKubeconfig(s, endpointOf(s))
	if err != nil {
		return err
	}
	if secret := s.Secrets[PurposeKubeconfig]; secret != nil {
		return c.writer.Patch(ctx, secret, func(o client.Object) {
			o.(*corev1.Secret).Data = data
			ownerOf(s.Plane).Adopt(o)
		})
	}
	return c.writer.Create(ctx, newSecret(s, PurposeKubeconfig, data))
}

// files returns the CAs and the encryption keys, if any, by file name in the PKI directory of the process. It
// decodes and re-encodes them, because Secrets that a user wrote may contain more than certificates and keys.
func files(s Snapshot) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, purpose := range s.authorities() {
		cert, key, err := secrets.Content(purpose, s.Secrets[purpose])
		if err != nil {
			return nil, fault.New(fault.Invalid, "AuthorityInvalid", "Secret %s cannot be used", s.Secrets[purpose].Name).From(err)
		}
		name := map[Purpose]string{PurposeCA: processconfig.CA, PurposeEtcd: processconfig.EtcdCA, PurposeProxy: processconfig.ProxyCA, PurposeSA: processconfig.SigningSA}[purpose]
		extension := ".crt"
		if purpose == PurposeSA {
			extension = ".pub"
		}
		out[name+extension], out[name+".key"] = cert, key
	}
	if !s.encrypts() {
		return out, nil
	}
	keys, err := keyFile(s)
	out[processconfig.EncryptionKeys] = keys
	return out, err
}

// fingerprint is a hash of the content of the CA Secrets.
func fingerprint(s Snapshot) string {
	sum := sha256.New()
	for _, purpose := range s.authorities() {
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			sum.Write(s.Secrets[purpose].Data[key])
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}
