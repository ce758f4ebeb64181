package clusterresourceset

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// decide computes the plan for a ClusterResourceSet. Package reconciler calls it in each reconciliation, again after
// the reads that it requests. It is pure: it neither reads nor writes. By strategy and the state of a resource in a
// cluster:
//
//	               not applied yet      applied, content changed   applied
//	ApplyOnce      create               nothing                    nothing
//	Reconcile      create or change     create or change           nothing
//
// One action applies to all clusters, because a failing cluster must not block the others.
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	if !s.Set.DeletionTimestamp.IsZero() {
		for _, b := range s.Bound {
			p.Do(unbind{Cluster: b.Name, Whole: isOnlySet(b, s.Set), Why: "the set is deleted"})
		}
		return p
	}
	if questions := ask(s); len(questions) > 0 {
		return reconciler.Plan{Reads: questions}
	}
	for _, r := range s.Resources {
		if r.Source != nil && !ownedBy(r.Source.OwnerReferences, s.Set) {
			p.Do(own{Kind: r.Ref.Kind, Name: r.Ref.Name})
		}
	}
	for _, b := range s.Former {
		p.Do(unbind{Cluster: b.Name, Whole: true, Why: "its Cluster is deleted"})
	}
	var names, waiting []string
	for _, m := range s.Clusters {
		if entryOf(m.Binding, s.Set.Name) != nil && !ownedBy(m.Binding.OwnerReferences, s.Set) {
			p.Do(ownBinding{Cluster: m.Cluster.Name})
		}
		switch {
		case !isReachable(m):
			waiting = append(waiting, m.Cluster.Name)
		case len(pending(s, m)) > 0:
			names = append(names, m.Cluster.Name)
		}
	}
	if len(names) > 0 {
		p.Do(apply{Clusters: strings.Join(names, ", ")})
	}
	if len(waiting) > 0 {
		p.WaitFor("ClustersNotReady", "Nothing is applied to Clusters while they are paused, not initialized or not connected: %s",
			condition.Names(waiting)).ForAll(clusterv1.ClusterKind, waiting).ToChange("spec.paused, " +
			"status.initialization.controlPlaneInitialized and condition " + clusterv1.ClusterRemoteConnectionProbeCondition)
	}
	return p
}

// ask requests contents that have to be applied to a cluster and, with strategy Reconcile, contents that have
// changed.
func ask(s snapshot) []reconciler.ReadRequest {
	var out []reconciler.ReadRequest
	for _, r := range s.Resources {
		if !usable(r) || r.Content != nil {
			continue
		}
		needed := reconciles(s.Set) && r.Hash == ""
		for _, m := range s.Clusters {
			needed = needed || isReachable(m) && needsApply(s, m, r)
		}
		if needed {
			out = append(out, askContent{Kind: r.Ref.Kind, Name: r.Ref.Name})
		}
	}
	return out
}

func usable(r resourceSource) bool { return r.Source != nil && !r.WrongType }

// needsApply reports whether the resource has to be applied to the cluster.
func needsApply(s snapshot, m selectedCluster, r resourceSource) bool {
	entry := entryOf(m.Binding, s.Set.Name)
	if entry == nil {
		return true
	}
	have := entry.GetResource(r.Ref)
	if have == nil || have.Applied == nil || !*have.Applied {
		return true
	}
	return reconciles(s.Set) && have.Hash != r.Hash
}

// pending returns the resources that have to be applied to the cluster and can be applied.
func pending(s snapshot, m selectedCluster) []resourceSource {
	if !isReachable(m) {
		return nil
	}
	var out []resourceSource
	for _, r := range s.Resources {
		if usable(r) && r.Content != nil && r.Content.Problem == "" && needsApply(s, m, r) {
			out = append(out, r)
		}
	}
	return out
}

// isReachable reports whether resources can be applied to the cluster now. Paused clusters are skipped, because they
// may be moving to another management cluster.
func isReachable(m selectedCluster) bool {
	reached := m.Cluster.Status.Initialization.ControlPlaneInitialized
	return reached != nil && *reached && m.Connected && !paused(m.Cluster)
}

func paused(c *clusterv1.Cluster) bool {
	_, annotated := c.Annotations[clusterv1.PausedAnnotation]
	return annotated || c.Spec.Paused != nil && *c.Spec.Paused
}

func reconciles(set *addonsv1.ClusterResourceSet) bool {
	return set.Spec.Strategy == string(addonsv1.ClusterResourceSetStrategyReconcile)
}

// ownedBy reports whether the owners contain the set with the current API version.
func ownedBy(owners []metav1.OwnerReference, set *addonsv1.ClusterResourceSet) bool {
	return slices.ContainsFunc(owners, func(ref metav1.OwnerReference) bool {
		return ref.UID == set.UID && ref.APIVersion == addonsv1.GroupVersion.String()
	})
}

// isOnlySet reports whether the binding has no entries of other sets.
func isOnlySet(b *addonsv1.ClusterResourceSetBinding, set *addonsv1.ClusterResourceSet) bool {
	return !slices.ContainsFunc(b.Spec.Bindings, func(e addonsv1.ResourceSetBinding) bool { return e.ClusterResourceSetName != set.Name })
}

// The actions of the controller. Each may be repeated. [decide] plans them, and act (act.go) runs them.
type (
	// own makes the set an owner of a ConfigMap or Secret, so that they are deleted and moved together.
	own struct{ Kind, Name string }
	// ownBinding restores the owner reference of the set on a cluster's binding.
	ownBinding struct{ Cluster string }
	// apply applies the pending resources to clusters and records the results in their bindings.
	apply struct {
		// Clusters are the names of the clusters, joined by commas.
		Clusters string
	}
	// unbind removes the entry of the set from a cluster's binding, or deletes the Whole binding.
	unbind struct {
		Cluster string
		Whole   bool
		Why     string
	}
)

func (a own) String() string {
	return fmt.Sprintf("own %s %s: it is a resource of the set", a.Kind, a.Name)
}
func (a ownBinding) String() string { return fmt.Sprintf("own the binding of Cluster %s", a.Cluster) }
func (a apply) String() string {
	return fmt.Sprintf("apply resources to clusters %s: they are not up to date there", a.Clusters)
}
func (a unbind) String() string {
	return fmt.Sprintf("forget the objects that were applied to Cluster %s: %s", a.Cluster, a.Why)
}
