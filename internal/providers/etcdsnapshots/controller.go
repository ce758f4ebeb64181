package etcdsnapshots

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
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/membership"
	"github.com/slipwayhq/slipway/internal/snapshots"
	"github.com/slipwayhq/slipway/internal/snapshots/destination"
	"github.com/slipwayhq/slipway/internal/snapshots/jobs"
)

// Name of the controller.
const Name = "etcdsnapshotpolicy"

// kind of the objects that it reconciles.
const kind = "EtcdSnapshotPolicy"

const (
	// readTimeout ends reading what a store has.
	readTimeout = time.Minute
	// tidyAfter is how old what an interrupted snapshot has left is when it is removed: longer than a snapshot may take.
	tidyAfter = time.Hour
)

// Config is what the controller needs of its surroundings.
type Config struct {
	// Sources is the etcd of workload clusters.
	Sources Sources
	// Stores are where snapshots may be.
	Stores destination.Settings
	// Jobs run what takes minutes; shared with restores.
	Jobs *jobs.Jobs
}

// Sources is the etcd of workload clusters.
type Sources interface {
	// Problem returns why no snapshot of the Cluster can be taken, empty if one can.
	Problem(ctx context.Context, cluster *clusterv1.Cluster) (string, error)
	// Open connects to its etcd. The caller closes it.
	Open(ctx context.Context, cluster client.ObjectKey) (Source, error)
}

// Source is the etcd of one workload cluster.
type Source interface {
	snapshots.Source
	Close() error
}

// Controller reconciles EtcdSnapshotPolicies.
type Controller struct {
	client  client.Client
	writer  *kube.Writer
	sources Sources
	stores  destination.Settings
	jobs    *jobs.Jobs
	now     func() time.Time
}

// Add adds the controller to the manager.
func Add(s loop.Setup, cfg Config) error {
	c := &Controller{client: s.Manager.GetClient(), sources: cfg.Sources, stores: cfg.Stores, jobs: cfg.Jobs, now: s.Clock()}
	r := loop.NewReconciler(s, c.definition())
	c.writer = r.Writer
	return s.Builder(Name, &hostedv1.EtcdSnapshotPolicy{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(changesMembership())).
		WatchesRawSource(cfg.Jobs.Changed(kind)).
		Complete(r)
}

func (c *Controller) definition() loop.Controller[*hostedv1.EtcdSnapshotPolicy, Snapshot] {
	return loop.Controller[*hostedv1.EtcdSnapshotPolicy, Snapshot]{
		Name: Name, New: func() *hostedv1.EtcdSnapshotPolicy { return &hostedv1.EtcdSnapshotPolicy{} },
		Urgent:  loop.Urgent{Fields: []string{"clusters", "lastSnapshotTime"}, Conditions: []string{hostedv1.ReadyCondition}},
		Observe: c.observe, Decide: Decide, Answer: c.answer, Act: c.act, Report: Report,
	}
}

func (c *Controller) act(ctx context.Context, s Snapshot, action loop.Action) error {
	switch a := action.(type) {
	case TakeSnapshot:
		policy := s.Policy.DeepCopy()
		c.jobs.Start(jobKey(policy, a.Cluster.Name), a.Name, func(ctx context.Context) error { return c.take(ctx, policy, a) })
		return nil // where another one has begun meanwhile, its end leads to the next reconciliation
	case RemoveSnapshot:
		from, err := c.stores.Open(ctx, s.Policy)
		if err != nil {
			return err
		}
		return snapshots.Remove(ctx, from, a.Manifest)
	case RemoveRequest:
		return c.writer.Patch(ctx, s.Policy, func(o client.Object) { kube.Annotate(o, hostedv1.TakeSnapshotAnnotation, nil) })
	}
	return fault.New(fault.Bug, "UnknownAction", "the etcd snapshot controller does not know how to %s", action)
}

// take takes a snapshot, and removes what earlier ones have left that were interrupted.
func (c *Controller) take(ctx context.Context, policy *hostedv1.EtcdSnapshotPolicy, a TakeSnapshot) error {
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
	defer func() { _ = from.Close() }() // it was only read
	_, err = snapshots.Take(ctx, from, to, snapshots.Order{Cluster: a.Cluster, Name: a.Name, Now: c.now(), Recipients: policy.Spec.Encryption.Recipients})
	return err
}

// jobKey is the key of the job of a Cluster of a policy.
func jobKey(policy *hostedv1.EtcdSnapshotPolicy, cluster string) string {
	return jobs.Key(kind, client.ObjectKeyFromObject(policy), cluster)
}

// changesMembership lets through what may make a Cluster one of a policy, or no longer one.
func changesMembership() predicate.Predicate {
	return predicate.Or(predicate.LabelChangedPredicate{}, predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*clusterv1.Cluster), e.ObjectNew.(*clusterv1.Cluster)
			was, is := before.Status.Initialization.ControlPlaneInitialized, after.Status.Initialization.ControlPlaneInitialized
			return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || (was != nil && *was) != (is != nil && *is)
		},
	})
}

// ofCluster enqueues the policies of the namespace of a Cluster.
func (c *Controller) ofCluster(ctx context.Context, o client.Object) []reconcile.Request {
	list := &hostedv1.EtcdSnapshotPolicyList{}
	if c.client.List(ctx, list, client.InNamespace(o.GetNamespace())) != nil { // the cache of a manager that ends
		return nil
	}
	return membership.Requests(list)
}
