package machines

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Workers counts the Machines of a Cluster that do not belong to its control plane, or its MachinePools if there are no
// such Machines. The KubeadmControlPlane controller waits with its deletion while there are any. A positive count may
// come from the cache; zero is confirmed with a live read.
type Workers struct {
	cache client.Reader
	live  *kube.SharedRead[map[string]int] // by Cluster
}

// NewWorkers returns a Workers that reads from the cache and, if needed, from the API server. The KubeadmControlPlane
// controller creates one.
func NewWorkers(cache, live client.Reader) *Workers {
	return &Workers{cache, kube.NewSharedRead(func(ctx context.Context, namespace string) (map[string]int, error) {
		return countWorkers(ctx, live, namespace)
	})}
}

// Count returns the number of worker Machines of a Cluster, or of its MachinePools if it has none.
func (w *Workers) Count(ctx context.Context, cluster client.ObjectKey) (int, error) {
	known := &clusterv1.MachineList{}
	of := client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}
	if err := w.cache.List(ctx, known, client.InNamespace(cluster.Namespace), of, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing Machines of Cluster %s: %w", cluster.Name, err)
	}
	n := 0
	for i := range known.Items {
		if _, is := known.Items[i].Labels[clusterv1.MachineControlPlaneLabel]; !is {
			n++
		}
	}
	if n > 0 {
		return n, nil
	}
	all, err := w.live.Get(ctx, cluster.Namespace)
	return all[cluster.Name], err
}

// countWorkers counts the workers of all Clusters in a namespace, because the API server has to read all of them in
// any case.
func countWorkers(ctx context.Context, live client.Reader, namespace string) (map[string]int, error) {
	machines, err := count(ctx, live, namespace, "Machine")
	if err != nil {
		return nil, err
	}
	pools, err := count(ctx, live, namespace, "MachinePool")
	if err != nil {
		return nil, err
	}
	for cluster, n := range pools {
		if machines[cluster] == 0 {
			machines[cluster] = n
		}
	}
	return machines, nil
}

// notControlPlane selects objects that do not belong to a control plane.
var notControlPlane = func() labels.Selector {
	not, err := labels.NewRequirement(clusterv1.MachineControlPlaneLabel, selection.DoesNotExist, nil)
	if err != nil { // the label is a constant
		panic(err)
	}
	return labels.NewSelector().Add(*not)
}()

// count counts the objects of a core kind by Cluster, excluding those of control planes.
func count(ctx context.Context, live client.Reader, namespace, kind string) (map[string]int, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind + "List"))
	if err := live.List(ctx, all, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: notControlPlane}); err != nil {
		return nil, fmt.Errorf("listing %ss of namespace %s: %w", kind, namespace, err)
	}
	n := map[string]int{}
	for i := range all.Items {
		n[all.Items[i].Labels[clusterv1.ClusterNameLabel]]++
	}
	return n, nil
}
