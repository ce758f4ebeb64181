package snapshots

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

// snapshot is the input of a decision about an EtcdSnapshotPolicy. observe reads it in each reconciliation;
// readRequested adds the content of the store if [decide] requests it.
type snapshot struct {
	Now    time.Time
	Policy *hostedv1.EtcdSnapshotPolicy
	// Clusters are the Clusters of the policy sorted by name, at most [hostedv1.MaxSnapshotClusters]. Omitted is the
	// number of Clusters above that limit.
	Clusters []target
	Omitted  int
	// Changed is true if the status was written for another generation or another set of Clusters.
	Changed bool
	// Denied is the reason why the operator's configuration denies the destination, or empty if it is allowed.
	Denied string
	// Store is the content of the store. It is only read if it is needed.
	Store storeContent
}

// target is a Cluster of which snapshots are taken. observe reads it for each Cluster that the policy selects.
type target struct {
	snapshots.Cluster
	Created time.Time
	// Problem is the reason why no snapshot can be taken, or empty.
	Problem string
	Job     snapshotJob
}

// snapshotJob is the state of the running or last snapshot of a Cluster. observe reads it from the runner of background
// jobs.
type snapshotJob struct {
	// Name is the name of the snapshot.
	Name          string
	Running, Busy bool
	Ended         time.Time
	Err           string
}

// storeContent is the content of a snapshot store. readRequested fills it in, and [decide] compares it with the
// schedule and the retention.
type storeContent struct {
	// Known is true if the store was read in this reconciliation.
	Known bool
	// Problem is the reason why the store cannot be read.
	Problem, Reason string
	// Snapshots by Cluster, oldest first.
	Snapshots map[string][]snapshots.Manifest
}

// observe reads the Clusters of the policy and the state of their jobs. The driver of package reconciler calls it at
// the start of each reconciliation.
func (c *controller) observe(ctx context.Context, policy *hostedv1.EtcdSnapshotPolicy) (snapshot, error) {
	s := snapshot{Now: c.now(), Policy: policy, Denied: c.stores.Denied(policy)}
	clusters, err := c.readClusters(ctx, policy)
	if err != nil {
		return s, err
	}
	if more := len(clusters) - hostedv1.MaxSnapshotClusters; more > 0 {
		s.Omitted, clusters = more, clusters[:hostedv1.MaxSnapshotClusters]
	}
	for i := range clusters {
		cluster := &clusters[i]
		target := target{Cluster: snapshots.Cluster{Namespace: cluster.Namespace, Name: cluster.Name, UID: string(cluster.UID)}, Created: cluster.CreationTimestamp.Time}
		if target.Problem, err = c.sources.Problem(ctx, cluster); err != nil {
			return s, err
		}
		job := c.jobs.State(jobKey(policy, cluster.Name))
		target.Job = snapshotJob{Name: job.What, Running: job.Running, Busy: job.Busy, Ended: job.Ended}
		if job.Err != nil {
			target.Job.Err = fault.UserMessage(job.Err)
		}
		s.Clusters = append(s.Clusters, target)
	}
	s.Changed = isChanged(s)
	return s, nil
}

// isChanged reports whether the status was written for another generation or another set of Clusters.
func isChanged(s snapshot) bool {
	for _, c := range s.Policy.Status.Conditions {
		if c.Type == hostedv1.ReadyCondition && c.ObservedGeneration != s.Policy.Generation {
			return true
		}
	}
	return !slices.EqualFunc(s.Clusters, s.Policy.Status.Clusters, func(a target, b hostedv1.ClusterSnapshots) bool { return a.Name == b.Name })
}

// readClusters returns the Clusters of a policy that are not being deleted, sorted by name.
func (c *controller) readClusters(ctx context.Context, policy *hostedv1.EtcdSnapshotPolicy) ([]clusterv1.Cluster, error) {
	if name := policy.Spec.ClusterName; name != "" {
		cluster, err := kube.GetCluster(ctx, c.client, client.ObjectKey{Namespace: policy.Namespace, Name: name})
		if err != nil || cluster == nil || !cluster.DeletionTimestamp.IsZero() {
			return nil, err
		}
		return []clusterv1.Cluster{*cluster}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(policy.Spec.ClusterSelector)
	if err != nil {
		return nil, fault.New(fault.Invalid, "ClusterSelectorInvalid", "spec.clusterSelector cannot be read: correct it").From(err)
	}
	list := &clusterv1.ClusterList{}
	if err := c.client.List(ctx, list, client.InNamespace(policy.Namespace), client.MatchingLabelsSelector{Selector: orNothing(selector)}); err != nil {
		return nil, fmt.Errorf("listing the Clusters of the policy: %w", err)
	}
	out := slices.DeleteFunc(list.Items, func(c clusterv1.Cluster) bool { return !c.DeletionTimestamp.IsZero() })
	slices.SortFunc(out, func(a, b clusterv1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// orNothing returns a selector that selects nothing if there is none.
func orNothing(s labels.Selector) labels.Selector {
	if s == nil {
		return labels.Nothing()
	}
	return s
}

// readRequested reads the store, which is the only read that [decide] requests. A failed read is returned in
// Store.Problem and not as an error.
func (c *controller) readRequested(ctx context.Context, s snapshot, _ reconciler.ReadRequest) (snapshot, error) {
	s.Store = storeContent{Known: true, Snapshots: map[string][]snapshots.Manifest{}}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	from, err := c.stores.Open(ctx, s.Policy)
	for _, cluster := range s.Clusters {
		if err != nil {
			break
		}
		s.Store.Snapshots[cluster.Name], err = snapshots.List(ctx, from, cluster.Cluster)
	}
	if err != nil {
		s.Store.Problem, s.Store.Reason = fault.UserMessage(err), "StoreNotReadable"
		if f := fault.As(err); f != nil {
			s.Store.Reason = f.Reason
		}
		return s, nil
	}
	for i, cluster := range s.Clusters { // the snapshot of a successful job is in the store
		if !cluster.Job.Ended.IsZero() && cluster.Job.Err == "" {
			c.jobs.Forget(jobKey(s.Policy, cluster.Name))
			s.Clusters[i].Job.Ended = time.Time{}
		}
	}
	return s, nil
}
