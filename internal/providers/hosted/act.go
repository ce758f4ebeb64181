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
	"github.com/slipwayhq/slipway/internal/authority"
	"github.com/slipwayhq/slipway/internal/componentfile"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// soon is when to look again for what no watch tells of.
const soon = 100 * time.Millisecond

// The actions of the controller. Each may be repeated.
type (
	// CreateAuthority makes one of the cluster's authorities.
	CreateAuthority struct {
		Purpose Purpose
		Cluster string
	}
	// CreateKeys creates the keys that data in etcd is encrypted with.
	CreateKeys struct{ Cluster string }
	// WriteKubeconfig makes the cluster's kubeconfig, or makes it again.
	WriteKubeconfig struct{ Cluster, Why string }
	// OwnSecret makes the control plane the owner of a Secret of the cluster again.
	OwnSecret struct {
		Purpose Purpose
		Cluster string
	}
	// StartProcess starts the control plane, or starts it again with another configuration.
	StartProcess struct {
		Version, Why string
		// Empty tells that it had data, which is gone.
		Empty bool
	}
	// ApplyAddons puts into the workload cluster what nodes need.
	ApplyAddons struct{ Hash string }
	// NoteInitialized notes in an annotation that the control plane has data.
	NoteInitialized struct{}
	// ReserveEndpoint chooses where a control plane listens.
	ReserveEndpoint struct{}
	// ChangeProcess makes a control plane that runs what its backend says that it is to be.
	ChangeProcess struct{ What string }
	// StageRestore begins to fetch the snapshot that is to be restored.
	StageRestore struct{ Snapshot string }
	// FinishRestore removes the request for a restore.
	FinishRestore struct{ Snapshot string }
	// RemoveProcess stops the control plane and removes its data.
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

func (c *Controller) act(ctx context.Context, s Snapshot, action loop.Action) error {
	b, err := c.backendOf(s.Plane)
	if err != nil {
		return err
	}
	switch a := action.(type) {
	case CreateAuthority:
		data, err := authority.Generate(a.Purpose, authority.Keys{}, s.Now)
		if err != nil {
			return err
		}
		return c.writer.Create(ctx, newSecret(s, a.Purpose, data))
	case CreateKeys:
		return c.writer.Create(ctx, newSecret(s, PurposeEncryption, componentfile.NewKeys()))
	case WriteKubeconfig:
		return c.writeKubeconfig(ctx, s)
	case OwnSecret:
		return c.writer.Patch(ctx, s.Secrets[a.Purpose], ownerOf(s.Plane).Take)
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
		return nil // its end leads to the next reconciliation
	case FinishRestore:
		return c.writer.Patch(ctx, s.Plane, func(o client.Object) { kube.Annotate(o, hostedv1.RestoreAnnotation, nil) })
	case StopProcess:
		return b.Stop(ctx, nameOf(s.Plane)) // only what can be stopped is quiesced
	case RemoveProcess:
		c.addons.Forget(nameOf(s.Plane))
		return b.ControlPlanes.Remove(ctx, nameOf(s.Plane))
	}
	return fault.New(fault.Bug, "UnknownAction", "the hosted control plane controller does not know how to %s", action)
}

// addonTimeout ends one call to the workload cluster.
const addonTimeout = 10 * time.Second

// applyAddons calls the workload cluster before there is a connection to it, and with the same limits.
func (c *Controller) applyAddons(ctx context.Context, s Snapshot) error {
	config, err := access(s)
	if err != nil {
		return err
	}
	c.limitCalls(config, s.Cluster)
	return c.furnish(ctx, config, addonsOf(s, endpointOf(s)))
}

// limitCalls makes calls share the limiter of the cluster, where there is one.
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
			ownerOf(s.Plane).Take(o)
		})
	}
	return c.writer.Create(ctx, newSecret(s, PurposeKubeconfig, data))
}

// files are the authorities, and the keys of encryption where there are any, as the process reads them, by name within its
// PKI folder: parsed and encoded again, because a user may have written the Secrets and with them more than certificates
// and keys.
func files(s Snapshot) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, purpose := range s.authorities() {
		cert, key, err := authority.Content(purpose, s.Secrets[purpose])
		if err != nil {
			return nil, fault.New(fault.Invalid, "AuthorityInvalid", "Secret %s cannot be used", s.Secrets[purpose].Name).From(err)
		}
		name := map[Purpose]string{PurposeCA: workload.CA, PurposeEtcd: workload.EtcdCA, PurposeProxy: workload.ProxyCA, PurposeSA: workload.SigningSA}[purpose]
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
	out[workload.EncryptionKeys] = keys
	return out, err
}

// fingerprint stands for the content of the authorities.
func fingerprint(s Snapshot) string {
	sum := sha256.New()
	for _, purpose := range s.authorities() {
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			sum.Write(s.Secrets[purpose].Data[key]) // never fails
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}
