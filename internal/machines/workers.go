package machines

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube/reading"
)

// Workers counts the Machines of Clusters that are none of their control planes, or their MachinePools where there are no such Machines.
// That there are some is said by the cache; that there are none is read past it.
type Workers struct {
	cache client.Reader
	live  *reading.Shared[map[string]int] // by Cluster
}

// NewWorkers returns one that reads from a cache, and past it.
func NewWorkers(cache, live client.Reader) *Workers {
	return &Workers{cache, reading.NewShared(func(ctx context.Context, namespace string) (map[string]int, error) {
		return countWorkers(ctx, live, namespace)
	})}
}

// Of counts the workers of a Cluster.
func (w *Workers) Of(ctx context.Context, cluster client.ObjectKey) (int, error) {
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
	all, err := w.live.Of(ctx, cluster.Namespace)
	return all[cluster.Name], err
}

// countWorkers counts those of all Clusters of a namespace: the API server looks at all of them, whichever are wanted.
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

// workersAlone leaves control planes out.
var workersAlone = func() labels.Selector {
	not, err := labels.NewRequirement(clusterv1.MachineControlPlaneLabel, selection.DoesNotExist, nil)
	if err != nil { // the label is a constant
		panic(err)
	}
	return labels.NewSelector().Add(*not)
}()

// count counts the objects of a core kind by their Cluster, without those of control planes.
func count(ctx context.Context, live client.Reader, namespace, kind string) (map[string]int, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind + "List"))
	if err := live.List(ctx, all, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: workersAlone}); err != nil {
		return nil, fmt.Errorf("listing %ss of namespace %s: %w", kind, namespace, err)
	}
	n := map[string]int{}
	for i := range all.Items {
		n[all.Items[i].Labels[clusterv1.ClusterNameLabel]]++
	}
	return n, nil
}
