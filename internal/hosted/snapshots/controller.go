package snapshots

import (
	"context"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

// Name of the controller. The flag --etcdsnapshotpolicy-concurrency contains it (package providerset), so it must not
// change.
const Name = "etcdsnapshotpolicy"

// kind of the reconciled objects.
const kind = "EtcdSnapshotPolicy"

const (
	// readTimeout limits reading the contents of a store.
	readTimeout = time.Minute
	// tidyAfter is the age at which the remains of an interrupted snapshot are removed. It is longer than a snapshot
	// may take.
	tidyAfter = time.Hour
)

// Config configures the controller. The manager fills it in.
type Config struct {
	// Sources connects to the etcd of workload clusters.
	Sources Sources
	// Stores opens the stores of snapshots.
	Stores snapshots.StoreSettings
	// Jobs runs operations that take minutes. It is shared with restores.
	Jobs *jobs.Runner
}

// Sources connects to the etcd of workload clusters. [EtcdConnector] implements it; tests have their own.
type Sources interface {
	// Problem returns the reason why no snapshot of the Cluster can be taken, or the empty string if one can.
	Problem(ctx context.Context, cluster *clusterv1.Cluster) (string, error)
	// Open connects to the etcd of a Cluster. The caller closes the connection.
	Open(ctx context.Context, cluster client.ObjectKey) (Source, error)
}

// Source is the etcd of one workload cluster. Open returns it to the job that takes a snapshot.
type Source interface {
	snapshots.Source
	Close() error
}

// controller reconciles EtcdSnapshotPolicies. Its methods observe, readRequested and act are called by the driver of
// package reconciler.
type controller struct {
	client  client.Client
	writer  *kube.Writer
	sources Sources
	stores  snapshots.StoreSettings
	jobs    *jobs.Runner
	now     func() time.Time
}

// Add adds the controller to the manager, which calls it at its start if the hosted control plane provider is enabled.
func Add(s reconciler.Setup, cfg Config) error {
	c := &controller{client: s.Manager.GetClient(), sources: cfg.Sources, stores: cfg.Stores, jobs: cfg.Jobs, now: s.Clock()}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	return s.Builder(Name, &hostedv1.EtcdSnapshotPolicy{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(changesMembership())).
		WatchesRawSource(cfg.Jobs.Changed(kind)).
		Complete(r)
}

func (c *controller) definition() reconciler.Controller[*hostedv1.EtcdSnapshotPolicy, snapshot] {
	return reconciler.Controller[*hostedv1.EtcdSnapshotPolicy, snapshot]{
		Name: Name, New: func() *hostedv1.EtcdSnapshotPolicy { return &hostedv1.EtcdSnapshotPolicy{} },
		Observe: c.observe, Decide: decide, Read: c.readRequested, Act: c.act, Report: report,
	}
}

// act executes one action of the plan of [decide]. Taking a snapshot only starts a background job.
func (c *controller) act(ctx context.Context, s snapshot, action reconciler.Action) error {
	switch a := action.(type) {
	case takeSnapshot:
		policy := s.Policy.DeepCopy()
		c.jobs.Start(jobKey(policy, a.Cluster.Name), a.Name, func(ctx context.Context) error { return c.take(ctx, policy, a) })
		return nil // if another job has started meanwhile, its end triggers the next reconciliation
	case removeSnapshot:
		from, err := c.stores.Open(ctx, s.Policy)
		if err != nil {
			return err
		}
		return snapshots.Remove(ctx, from, a.Manifest)
	case removeRequest:
		return c.writer.Patch(ctx, s.Policy, func(o client.Object) { kube.Annotate(o, hostedv1.TakeSnapshotAnnotation, nil) })
	}
	return reconciler.UnknownAction("etcd snapshot", action)
}

// take takes a snapshot after removing the remains of interrupted ones.
func (c *controller) take(ctx context.Context, policy *hostedv1.EtcdSnapshotPolicy, a takeSnapshot) error {
	to, err := c.stores.Open(ctx, policy)
	if err != nil {
		return err
	}
	if err := snapshots.Tidy(ctx, to, a.Cluster, c.now().Add(-tidyAfter)); err != nil {
		return err
	}
	from, err := c.sources.Open(ctx, client.ObjectKey{Namespace: a.Cluster.Namespace, Name: a.Cluster.Name})
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // read-only connection
	_, err = snapshots.Take(ctx, from, to, snapshots.TakeOptions{Cluster: a.Cluster, Name: a.Name, Now: c.now(), Recipients: policy.Spec.Encryption.Recipients})
	return err
}

// jobKey returns the key of the snapshot job for a policy and a Cluster.
func jobKey(policy *hostedv1.EtcdSnapshotPolicy, cluster string) string {
	return jobs.Key(kind, client.ObjectKeyFromObject(policy), cluster)
}

// changesMembership passes Cluster events that may add the Cluster to a policy or remove it.
func changesMembership() predicate.Predicate {
	return predicate.Or(predicate.LabelChangedPredicate{}, predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*clusterv1.Cluster), e.ObjectNew.(*clusterv1.Cluster)
			was, is := before.Status.Initialization.ControlPlaneInitialized, after.Status.Initialization.ControlPlaneInitialized
			return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || (was != nil && *was) != (is != nil && *is)
		},
	})
}

// ofCluster enqueues the policies in the namespace of a Cluster.
func (c *controller) ofCluster(ctx context.Context, o client.Object) []reconcile.Request {
	list := &hostedv1.EtcdSnapshotPolicyList{}
	if c.client.List(ctx, list, client.InNamespace(o.GetNamespace())) != nil { // fails only if the cache is being stopped
		return nil
	}
	return watches.Requests(list)
}
