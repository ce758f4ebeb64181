package clusterresourceset

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// atOnce limits how many clusters a set is applied to in parallel.
const atOnce = 10

// act runs one action. Package reconciler calls it for each action that [decide] planned, in order.
func (c *controller) act(ctx context.Context, s snapshot, action reconciler.Action) error {
	switch a := action.(type) {
	case own:
		return c.own(ctx, s, a)
	case ownBinding:
		return c.writer.Patch(ctx, selectedClusterNamed(s, a.Cluster).Binding, func(o client.Object) { addOwner(o, s.Set) })
	case apply:
		return c.applyAll(ctx, s)
	case unbind:
		return c.unbind(ctx, s, a)
	}
	return reconciler.UnknownAction("clusterresourceset", action)
}

// own adds the owner reference to a source. A source that was deleted in the meantime is ignored.
func (c *controller) own(ctx context.Context, s snapshot, a own) error {
	for _, r := range s.Resources {
		if r.Ref.Kind == a.Kind && r.Ref.Name == a.Name && r.Source != nil {
			err := c.writer.Patch(ctx, r.Source, func(o client.Object) { addOwner(o, s.Set) })
			return client.IgnoreNotFound(err)
		}
	}
	return nil
}

// addOwner makes the set an owner and replaces any older reference to it.
func addOwner(o client.Object, set *addonsv1.ClusterResourceSet) {
	owner := metav1.OwnerReference{
		APIVersion: addonsv1.GroupVersion.String(), Kind: "ClusterResourceSet", Name: set.Name, UID: set.UID,
	}
	refs := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return ref.Kind == owner.Kind && ref.Name == owner.Name
	})
	o.SetOwnerReferences(append(refs, owner))
}

// unbind deletes a binding, or removes the entry and the owner reference of the set.
func (c *controller) unbind(ctx context.Context, s snapshot, a unbind) error {
	i := slices.IndexFunc(s.Bound, func(b *addonsv1.ClusterResourceSetBinding) bool { return b.Name == a.Cluster })
	if i < 0 {
		return nil
	}
	if a.Whole {
		return c.writer.Delete(ctx, s.Bound[i])
	}
	return client.IgnoreNotFound(c.writer.Patch(ctx, s.Bound[i], func(o client.Object) {
		b := o.(*addonsv1.ClusterResourceSetBinding)
		b.RemoveBinding(s.Set)
		b.OwnerReferences = slices.DeleteFunc(b.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == s.Set.UID })
	}))
}

// applyAll applies the pending resources to all clusters, several in parallel. A failing cluster does not block the
// others. All failures are returned together. The goroutines share the snapshot, so applyTo must not change it.
func (c *controller) applyAll(ctx context.Context, s snapshot) error {
	var wait sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	failed := make([][]failure, len(s.Clusters))
	for i, m := range s.Clusters {
		if len(pending(s, m)) == 0 {
			continue
		}
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			failed[i] = c.applyTo(ctx, s, m)
		})
	}
	wait.Wait()
	if all := slices.Concat(failed...); len(all) > 0 {
		return applyError{failures: all}
	}
	return nil
}

// applyTo applies the pending resources to a cluster and records the results.
func (c *controller) applyTo(ctx context.Context, s snapshot, m selectedCluster) []failure {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(m.Cluster))
	if err != nil {
		return []failure{{cluster: m.Cluster.Name, err: err}}
	}
	var failures []failure
	var results []addonsv1.ResourceBinding
	for _, r := range pending(s, m) {
		problems := applyObjects(ctx, workload, r.Content.Objects, reconciles(s.Set))
		for _, problem := range problems {
			failures = append(failures, failure{cluster: m.Cluster.Name, resource: r.Ref, err: problem})
		}
		applied := len(problems) == 0
		results = append(results, addonsv1.ResourceBinding{
			ResourceRef: r.Ref, Hash: r.Hash, Applied: &applied, LastAppliedTime: metav1.NewTime(s.Now),
		})
	}
	if err := c.record(ctx, s, m, results); err != nil {
		failures = append(failures, failure{cluster: m.Cluster.Name, err: err})
	}
	return failures
}

// record writes changed results to the binding of the cluster. A failure that differs only in its time counts as
// unchanged.
func (c *controller) record(ctx context.Context, s snapshot, m selectedCluster, results []addonsv1.ResourceBinding) error {
	if m.Binding == nil {
		b := newBinding(s, m, results)
		if err := c.writer.Create(ctx, b); err != nil || b.ResourceVersion != "" {
			return err
		}
		return fault.New(fault.Conflict, "BindingExists", "another ClusterResourceSet created the binding of Cluster %s meanwhile; retrying", b.Name)
	}
	return c.writer.Patch(ctx, m.Binding, func(o client.Object) {
		b := o.(*addonsv1.ClusterResourceSetBinding)
		entry := b.GetOrCreateBinding(s.Set)
		for _, result := range results {
			before := entry.GetResource(result.ResourceRef)
			if !*result.Applied && before != nil {
				result.LastAppliedTime = before.LastAppliedTime
			}
			entry.SetBinding(result)
		}
		addOwner(b, s.Set)
	})
}

// newBinding returns the binding of a cluster, which has the name of the cluster.
func newBinding(s snapshot, m selectedCluster, results []addonsv1.ResourceBinding) *addonsv1.ClusterResourceSetBinding {
	b := &addonsv1.ClusterResourceSetBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Cluster.Namespace, Name: m.Cluster.Name, Labels: ownership.PassWatchLabel(m.Cluster, nil),
		},
		Spec: addonsv1.ClusterResourceSetBindingSpec{
			ClusterName: m.Cluster.Name,
			Bindings:    []addonsv1.ResourceSetBinding{{ClusterResourceSetName: s.Set.Name, Resources: results}},
		},
	}
	addOwner(b, s.Set)
	return b
}

func selectedClusterNamed(s snapshot, cluster string) selectedCluster {
	for _, m := range s.Clusters {
		if m.Cluster.Name == cluster {
			return m
		}
	}
	return selectedCluster{}
}
