package controlplane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/addons"
	controlplaneworkload "github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
)

// Name of the controller, in logs, metrics and its field manager slipway-kubeadmcontrolplane. Machines and their clones
// have other field managers, see machines.go. Existing objects contain the field manager, so it must not change.
const Name = "kubeadmcontrolplane"

// Settings of the controller.
type Settings struct {
	// ConnectionGrace is the time for which conditions remain unchanged while the workload cluster is not connected.
	// Zero means no grace period.
	ConnectionGrace time.Duration
	// Etcd contains the timeouts of calls to etcd members.
	Etcd controlplaneworkload.EtcdTimeouts
	// Policy is the operator's configuration. The zero value allows everything.
	Policy policy.Configuration
	// InPlaceUpdates enables in-place updates by extensions instead of replacements (feature gate InPlaceUpdates).
	InPlaceUpdates bool
}

// workloads provides access to the workload clusters.
type workloads interface {
	controlplaneworkload.Clusters
	Health(cluster client.ObjectKey) slipwayworkload.Health
}

// controller reconciles KubeadmControlPlanes. Its methods observe, read and act are called by the driver of package
// reconciler.
type controller struct {
	client client.Client
	// live bypasses the cache. secrets contains the Secrets with a cluster label.
	live, secrets client.Reader
	// A change of a template enqueues the control planes that reference it. Changes of clones do not enqueue.
	templates, clones *kube.References
	workers           *machines.Workers
	workloads         workloads
	members           controlplaneworkload.EtcdConnector
	certificates      controlplaneworkload.CertificateReader
	writer            *kube.Writer
	settings          Settings
	scope             watches.Scope
	// extensions update Machines in place. If it is nil, in-place updates are disabled.
	extensions hook.Client
	failed     inplace.FailedCalls
	now        func() time.Time
	// intn returns a random number in [0,n).
	intn func(n int) int

	pending        machines.Pending
	verified       machines.Verified
	states         controlplaneworkload.StateCache[controlplaneworkload.State]
	kubeadmObjects controlplaneworkload.StateCache[addons.KubeadmState]
}

const byCluster = "kubeadmcontrolplane.spec.clusterName"

// clusterConnections provides access to workload clusters and to their Pods.
type clusterConnections interface {
	slipwayworkload.Workloads
	controlplaneworkload.EtcdForwarder
}

// Add adds the controller to the manager, which calls it at its start if the kubeadm control plane provider is enabled.
// If extensions is nil, no Machine is updated in place.
func Add(s reconciler.Setup, clusters clusterConnections, extensions hook.Client, settings Settings) error {
	c := &controller{
		client: s.Manager.GetClient(), live: s.Manager.GetAPIReader(), secrets: s.Manager.GetCache(), workloads: clusters, settings: settings,
		workers: machines.NewWorkers(s.Manager.GetClient(), s.Manager.GetAPIReader()), extensions: extensions, scope: s.Scope(), now: s.Clock(), intn: s.Random(),
	}
	c.members = &controlplaneworkload.EtcdConnections{Forwarder: clusters, Secrets: []client.Reader{c.secrets, c.live}, Now: c.now, EtcdTimeouts: settings.Etcd}
	c.certificates = controlplaneworkload.ExpiryReader{Forwarder: clusters, Secrets: []client.Reader{c.secrets, c.live}}
	if err := s.Manager.GetFieldIndexer().IndexField(context.Background(), &clusterv1.Machine{}, byCluster, clusterOf); err != nil {
		return fmt.Errorf("index Machines by their Cluster: %w", err)
	}
	if err := watches.IndexByCluster(s.Manager.GetFieldIndexer(), Name, &controlplanev1.KubeadmControlPlane{}); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	built, err := s.Builder(Name, &controlplanev1.KubeadmControlPlane{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.requestsForMachine), builder.WithPredicates(machines.Changed(append(controlplaneworkload.ConditionTypes(true), clusterv1.DeletingCondition, clusterv1.InfrastructureReadyCondition)...))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(requestsForCluster)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.requestsForSecret), builder.WithPredicates(watches.OrphanedSecrets())).
		WatchesRawSource(clusters.Changed(Name, c.requestsForClusterKey)).
		Build(r)
	if err != nil {
		return err
	}
	c.clones = kube.NewReferences(c.client, nil).LimitedTo(s.WatchFilter).
		WithDiagnostics(s.Manager.GetRESTMapper(), c.live).IndexedBy(s.Manager.GetFieldIndexer(), Name, clusterv1.MachineControlPlaneNameLabel)
	c.templates, err = s.References(Name, built, watches.Referrers{
		New:     func() client.Object { return &controlplanev1.KubeadmControlPlane{} },
		NewList: func() client.ObjectList { return &controlplanev1.KubeadmControlPlaneList{} }, Refs: templateRefs,
	})
	return err
}

func (c *controller) definition() reconciler.Controller[*controlplanev1.KubeadmControlPlane, snapshot] {
	return reconciler.Controller[*controlplanev1.KubeadmControlPlane, snapshot]{
		Name: Name, Finalizer: controlplanev1.KubeadmControlPlaneFinalizer,
		New:   func() *controlplanev1.KubeadmControlPlane { return &controlplanev1.KubeadmControlPlane{} },
		Adopt: c.labelNewControlPlane, Observe: c.observe, Decide: decide, Read: c.read, Act: c.act, Report: report,
	}
}

// labelNewControlPlane labels a new control plane with its Cluster in the same request that adds the finalizer.
func (c *controller) labelNewControlPlane(_ context.Context, plane *controlplanev1.KubeadmControlPlane) (func(client.Object), error) {
	name := clusterName(plane)
	if name == "" {
		return nil, nil
	}
	return func(o client.Object) { ownership.Label(o, clusterv1.ClusterNameLabel, name) }, nil
}

func clusterOf(o client.Object) []string { return []string{o.(*clusterv1.Machine).Spec.ClusterName} }

func templateRefs(o client.Object) []clusterv1.ContractVersionedObjectReference {
	return []clusterv1.ContractVersionedObjectReference{o.(*controlplanev1.KubeadmControlPlane).Spec.MachineTemplate.Spec.InfrastructureRef}
}

// requestsForMachine returns a request for the control plane that controls a Machine. For a control plane Machine
// without a controller, and for a deleted worker, it returns the control plane of their Cluster.
func (c *controller) requestsForMachine(ctx context.Context, o client.Object) []reconcile.Request {
	m := o.(*clusterv1.Machine)
	owner := metav1.GetControllerOf(m)
	_, isControlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	switch {
	case owner != nil && owner.Kind == controlPlaneKind:
		return requestsFor(m.Namespace, owner.Name)
	case owner == nil && isControlPlane, !isControlPlane && !m.DeletionTimestamp.IsZero():
		return c.requestsForClusterKey(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName})
	}
	return nil
}

func requestsFor(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}

// requestsForCluster returns a request for the control plane of a Cluster.
func requestsForCluster(_ context.Context, o client.Object) []reconcile.Request {
	ref := o.(*clusterv1.Cluster).Spec.ControlPlaneRef
	if ref.Kind != controlPlaneKind || ref.APIGroup != controlplanev1.GroupVersion.Group {
		return nil
	}
	return requestsFor(o.GetNamespace(), ref.Name)
}

func (c *controller) requestsForClusterKey(ctx context.Context, key client.ObjectKey) []reconcile.Request {
	cluster := &clusterv1.Cluster{}
	if c.client.Get(ctx, key, cluster, client.UnsafeDisableDeepCopy) != nil { // if the Cluster is created later, its own event enqueues
		return nil
	}
	return requestsForCluster(ctx, cluster)
}

// requestsForSecret returns a request for the control plane of the Cluster in the Secret's label.
func (c *controller) requestsForSecret(ctx context.Context, o client.Object) []reconcile.Request {
	return c.requestsForClusterKey(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[clusterv1.ClusterNameLabel]})
}
