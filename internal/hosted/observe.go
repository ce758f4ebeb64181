package hosted

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/policy"
)

// snapshot is the input of decisions about a HostedControlPlane. observe reads it in each reconciliation, and
// readRequested adds the parts that decide requests.
type snapshot struct {
	Now   time.Time
	Plane *hostedv1.HostedControlPlane
	// Cluster is nil if the control plane has no owner yet or the Cluster does not exist.
	Cluster *clusterv1.Cluster
	// Secrets by purpose, without missing ones.
	Secrets map[secretPurpose]*corev1.Secret
	// Kubeconfig is the parsed kubeconfig Secret.
	Kubeconfig secrets.Kubeconfig
	// Capabilities are the static properties of the backend, and Process is the observed state of the control plane.
	Capabilities backend.Capabilities
	Process      backend.ControlPlane
	// Gateway is the host's address in the cluster's network. It is only read before a process is started.
	Gateway hostGateway
	// Restore is the state of a requested restore.
	Restore restore
	// Quiesce is the quiesce request.
	Quiesce quiesceRequest
	// Addons is the last reading of the add-ons.
	Addons addons.Reading
	// Turn and PlaneCount are only read before a process is started or restarted.
	Turn       backend.Turn
	PlaneCount backend.PlaneCount
	// ReservedPorts are the ports of the management cluster.
	ReservedPorts []uint16
	// Policy restricts users who write objects.
	Policy policy.Configuration
}

// observe reads the objects of the management cluster and the state of the control plane from its backend. The driver
// of package reconciler calls it at the start of each reconciliation.
func (c *controller) observe(ctx context.Context, plane *hostedv1.HostedControlPlane) (snapshot, error) {
	s := snapshot{Now: c.now(), Plane: plane, Secrets: map[secretPurpose]*corev1.Secret{}, Policy: c.policy, ReservedPorts: c.reserved, Quiesce: c.quiesceOf(plane)}
	if err := c.readCluster(ctx, &s); err != nil {
		return s, err
	}
	b, err := c.backendOf(plane)
	if err == nil {
		s.Capabilities = b.ControlPlanes.Capabilities(c.policy)
		s.Process, err = b.ControlPlanes.Status(ctx, nameOf(plane))
	}
	if err != nil {
		return s, fmt.Errorf("reading the state of the control plane: %w", err)
	}
	s.Restore = c.readRestore(s, b)
	if s.Cluster == nil {
		return s, nil
	}
	if err := c.watchAddons(ctx, s); err != nil {
		return s, err
	}
	s.Addons = c.addons.Get(nameOf(plane))
	return s, c.readSecrets(ctx, &s)
}

func (c *controller) readCluster(ctx context.Context, s *snapshot) error {
	name := clusterName(s.Plane)
	if name == "" {
		return nil
	}
	cluster, err := kube.GetCluster(ctx, c.client, client.ObjectKey{Namespace: s.Plane.Namespace, Name: name})
	s.Cluster = cluster
	return err
}

// readSecrets reads all Secrets in parallel, because each missing one needs a request to the API server.
func (c *controller) readSecrets(ctx context.Context, s *snapshot) error {
	purposes := append(s.authorities(), purposeKubeconfig)
	if s.encrypts() {
		purposes = append(purposes, purposeEncryption)
	}
	found := make([]*corev1.Secret, len(purposes))
	reads, ctx := fault.NewGroup(ctx)
	for i, purpose := range purposes {
		reads.Go(func() (err error) {
			found[i], err = c.readSecret(ctx, client.ObjectKey{Namespace: s.Plane.Namespace, Name: purpose.SecretName(s.Cluster.Name)})
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return err
	}
	for i, purpose := range purposes {
		if found[i] != nil {
			s.Secrets[purpose] = found[i]
		}
	}
	s.Kubeconfig = secrets.ParseKubeconfig(s.Secrets[purposeKubeconfig])
	return nil
}

// readSecret reads a Secret from the cache, and from the API server if it is missing or stale in the cache,
// because Secrets that users supply may not match the filter of the cache. It returns nil if the Secret does
// not exist.
func (c *controller) readSecret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.cache.Get(ctx, key, secret, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && c.writer.Writes().Stale(secret) {
		secret = &corev1.Secret{}
		err = c.client.Get(ctx, key, secret)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key.Name, err)
	}
	return secret, nil
}

// clusterName returns the name of the Cluster that owns the control plane, or an empty string.
func clusterName(plane *hostedv1.HostedControlPlane) string {
	for _, ref := range plane.OwnerReferences {
		if ref.Kind == clusterv1.ClusterKind && schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group == clusterv1.GroupVersion.Group {
			return ref.Name
		}
	}
	return ""
}

// nameOf identifies a control plane in the backends. It is unambiguous because a namespace name contains no dot. The
// backends store the data of a control plane under this name, so its form must not change. [controller.removeOrphan]
// and [requestsForProcess] have the same form.
func nameOf(plane *hostedv1.HostedControlPlane) string { return plane.Namespace + "." + plane.Name }
