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

// The actions of the controller: [decide] plans them, and act executes them. All of them are idempotent. String is the
// text in the log and in the output of `slipway explain`.
type (
	// createAuthority creates the Secret of one of the cluster's CAs or key pairs.
	createAuthority struct {
		Purpose secretPurpose
		Cluster string
	}
	// createKeys creates the Secret with the keys for encryption at rest.
	createKeys struct{ Cluster string }
	// writeKubeconfig creates or replaces the cluster's kubeconfig.
	writeKubeconfig struct{ Cluster, Why string }
	// ownSecret restores the control plane as the owner of a Secret of the cluster.
	ownSecret struct {
		Purpose secretPurpose
		Cluster string
	}
	// startProcess starts the control plane, or restarts it with another configuration.
	startProcess struct {
		Version, Why string
		// Empty means that the control plane had data, which is lost.
		Empty bool
	}
	// applyAddons applies the objects that nodes need to the workload cluster.
	applyAddons struct{ Hash string }
	// recordInitialized records in an annotation that the control plane was initialized.
	recordInitialized struct{}
	// reserveEndpoint chooses the endpoint of the control plane.
	reserveEndpoint struct{}
	// changeProcess applies a change to a running control plane that its backend reports as pending.
	changeProcess struct{ What string }
	// stageRestore starts to fetch the snapshot for a restore.
	stageRestore struct{ Snapshot string }
	// finishRestore removes the annotation that requested a restore.
	finishRestore struct{ Snapshot string }
	// removeProcess stops the control plane and deletes its data.
	removeProcess struct{}
)

func (a createAuthority) String() string {
	return fmt.Sprintf("create Secret %s: it does not exist yet", a.Purpose.SecretName(a.Cluster))
}
func (a createKeys) String() string {
	return fmt.Sprintf("create Secret %s: encryption at rest is enabled and there are no keys yet", purposeEncryption.SecretName(a.Cluster))
}
func (a writeKubeconfig) String() string {
	return fmt.Sprintf("write Secret %s: %s", purposeKubeconfig.SecretName(a.Cluster), a.Why)
}
func (a ownSecret) String() string {
	return fmt.Sprintf("own Secret %s: it has no owner that deletes it", a.Purpose.SecretName(a.Cluster))
}
func (a startProcess) String() string {
	return fmt.Sprintf("start the control plane at %s: %s", a.Version, a.Why)
}
func (a applyAddons) String() string {
	return "apply the add-ons to the workload cluster, revision " + a.Hash
}
func (recordInitialized) String() string {
	return "record in an annotation that the control plane was initialized, because a restore may lose its status"
}
func (reserveEndpoint) String() string {
	return "choose the control plane endpoint: the infrastructure provides none for such a control plane"
}
func (a changeProcess) String() string { return a.What }
func (a stageRestore) String() string {
	return "fetch snapshot " + a.Snapshot + ": a restore was requested"
}
func (a finishRestore) String() string {
	return "remove the restore request: the API server is ready with snapshot " + a.Snapshot
}
func (removeProcess) String() string {
	return "stop the control plane and delete its data: it is being deleted"
}

// act executes one action of the plan of [decide]. The driver of package reconciler calls it for each action in order,
// until one fails.
func (c *controller) act(ctx context.Context, s snapshot, action reconciler.Action) error {
	b, err := c.backendOf(s.Plane)
	if err != nil {
		return err
	}
	switch a := action.(type) {
	case createAuthority:
		data, err := secrets.Generate(a.Purpose, secrets.KeyOptions{}, s.Now)
		if err != nil {
			return err
		}
		return c.writer.Create(ctx, newSecret(s, a.Purpose, data))
	case createKeys:
		return c.writer.Create(ctx, newSecret(s, purposeEncryption, componentconfig.NewKeys()))
	case writeKubeconfig:
		return c.writeKubeconfig(ctx, s)
	case ownSecret:
		return c.writer.Patch(ctx, s.Secrets[a.Purpose], ownerOf(s.Plane).Adopt)
	case startProcess, changeProcess:
		content, err := files(s)
		if err != nil {
			return err
		}
		return b.ControlPlanes.Start(ctx, nameOf(s.Plane), configOf(s), content)
	case applyAddons:
		return c.applyAddons(ctx, s)
	case recordInitialized:
		return c.writer.Patch(ctx, s.Plane, func(o client.Object) {
			metav1.SetMetaDataAnnotation(&o.(*hostedv1.HostedControlPlane).ObjectMeta, hostedv1.InitializedAnnotation, "true")
		})
	case reserveEndpoint:
		wanted := endpointOf(s)
		endpoint, err := b.Endpoints.Reserve(ctx, nameOf(s.Plane), wanted)
		if err != nil || wanted.IsValid() || !endpoint.IsValid() {
			return err
		}
		return c.writer.Patch(ctx, s.Plane, func(o client.Object) {
			o.(*hostedv1.HostedControlPlane).Spec.ControlPlaneEndpoint = endpoint
		})
	case stageRestore:
		c.stageRestore(s, b)
		return nil // the end of the job triggers the next reconciliation
	case finishRestore:
		return c.writer.Patch(ctx, s.Plane, func(o client.Object) { kube.Annotate(o, hostedv1.RestoreAnnotation, nil) })
	case stopProcess:
		return b.Stop(ctx, nameOf(s.Plane)) // only backends that can stop a control plane support quiescing
	case removeProcess:
		c.addons.Forget(nameOf(s.Plane))
		return b.ControlPlanes.Remove(ctx, nameOf(s.Plane))
	}
	return reconciler.UnknownAction("hosted control plane", action)
}

// addonTimeout is the timeout of one request to the workload cluster. [access] sets it for all requests of the
// controller.
const addonTimeout = 10 * time.Second

// applyAddons connects to the workload cluster directly, because the shared connection may not exist yet. The
// request limits are the same.
func (c *controller) applyAddons(ctx context.Context, s snapshot) error {
	config, err := access(s)
	if err != nil {
		return err
	}
	c.limitCalls(config, s.Cluster)
	return c.applyObjects(ctx, config, addonsOf(s))
}

// limitCalls makes requests share the rate limiter of the cluster, if there is one.
func (c *controller) limitCalls(config *rest.Config, cluster *clusterv1.Cluster) {
	if c.workloads != nil {
		config.Wrap(c.workloads.LimitCalls(client.ObjectKeyFromObject(cluster)))
	}
}

// writeKubeconfig creates the kubeconfig Secret, or replaces its content.
func (c *controller) writeKubeconfig(ctx context.Context, s snapshot) error {
	data, err := newKubeconfig(s)
	if err != nil {
		return err
	}
	if secret := s.Secrets[purposeKubeconfig]; secret != nil {
		return c.writer.Patch(ctx, secret, func(o client.Object) {
			o.(*corev1.Secret).Data = data
			ownerOf(s.Plane).Adopt(o)
		})
	}
	return c.writer.Create(ctx, newSecret(s, purposeKubeconfig, data))
}

// files returns the CAs and the encryption keys, if any, by file name in the PKI directory of the process. It
// decodes and re-encodes them, because Secrets that a user wrote may contain more than certificates and keys.
func files(s snapshot) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, purpose := range s.authorities() {
		cert, key, err := secrets.Content(purpose, s.Secrets[purpose])
		if err != nil {
			return nil, fault.New(fault.Invalid, "AuthorityInvalid", "Secret %s cannot be used", s.Secrets[purpose].Name).From(err)
		}
		name := map[secretPurpose]string{purposeCA: processconfig.CA, purposeEtcd: processconfig.EtcdCA, purposeProxy: processconfig.ProxyCA, purposeSA: processconfig.SigningSA}[purpose]
		extension := ".crt"
		if purpose == purposeSA {
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

// fingerprint is a hash of the content of the CA Secrets. It is part of the configuration of the process, so that the
// process restarts if a CA changes. [decide] calls it for the desired configuration. A change of this computation
// restarts every control plane.
func fingerprint(s snapshot) string {
	sum := sha256.New()
	for _, purpose := range s.authorities() {
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			sum.Write(s.Secrets[purpose].Data[key])
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}
