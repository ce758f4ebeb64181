package watches

import (
	"bytes"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// OrphanedSecrets is a predicate for controllers that own Secrets of Clusters. It selects Secrets without a controller
// owner, which these controllers adopt again. The KubeadmControlPlane and KubeadmConfig controllers watch Secrets with
// it.
func OrphanedSecrets() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		secret, ok := o.(*corev1.Secret)
		return ok && secret.Type == clusterv1.ClusterSecretType && metav1.GetControllerOfNoCopy(secret) == nil
	})
}

// OrphanedOrChangedSecrets extends [OrphanedSecrets] for owners whose running processes depend on the content: it
// also selects Secrets named <cluster>-<purpose> when their content changes. Creations and metadata changes are not
// selected, so that an owner does not enqueue itself. Deletions are not selected either, because a new certificate
// authority in place of a deleted one does not trust anything that the previous one signed. The HostedControlPlane
// controller watches Secrets with it.
func OrphanedOrChangedSecrets[P ~string](purposes ...P) predicate.Predicate {
	named := func(o client.Object) bool {
		cluster := o.GetLabels()[clusterv1.ClusterNameLabel]
		return slices.ContainsFunc(purposes, func(p P) bool { return o.GetName() == cluster+"-"+string(p) })
	}
	return predicate.Or(OrphanedSecrets(), predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Secret)
			after, ok2 := e.ObjectNew.(*corev1.Secret)
			return ok && ok2 && named(after) && !maps.EqualFunc(before.Data, after.Data, bytes.Equal)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
}

// ClusterChanged is a predicate for controllers of a Cluster's members. It selects changes that affect decisions about
// members and ignores the rest of the status. Most controllers that watch Clusters do so with it, some together with
// other predicates. The control plane controllers watch all changes.
func ClusterChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1.Cluster)
			after, ok2 := e.ObjectNew.(*clusterv1.Cluster)
			if !ok || !ok2 {
				return false
			}
			return before.Generation != after.Generation ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
				ptr.Deref(before.Status.Initialization.InfrastructureProvisioned, false) != ptr.Deref(after.Status.Initialization.InfrastructureProvisioned, false) ||
				ptr.Deref(before.Status.Initialization.ControlPlaneInitialized, false) != ptr.Deref(after.Status.Initialization.ControlPlaneInitialized, false)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
