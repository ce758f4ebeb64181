package machines

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Workers counts the Machines of a Cluster that are none of its control plane, or its MachinePools where there are no such Machines. That
// there are some is said by the first reader, which may be a cache; that there are none, by the last.
func Workers(ctx context.Context, cluster client.ObjectKey, from ...client.Reader) (int, error) {
	n, labels := 0, client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}
	for _, reader := range from {
		all := &clusterv1.MachineList{}
		if err := reader.List(ctx, all, client.InNamespace(cluster.Namespace), labels, client.UnsafeDisableDeepCopy); err != nil {
			return 0, fmt.Errorf("listing Machines of Cluster %s: %w", cluster.Name, err)
		}
		for i := range all.Items {
			if _, is := all.Items[i].Labels[clusterv1.MachineControlPlaneLabel]; !is {
				n++
			}
		}
		if n > 0 {
			return n, nil
		}
	}
	pools := &clusterv1.MachinePoolList{}
	if err := from[len(from)-1].List(ctx, pools, client.InNamespace(cluster.Namespace), labels); err != nil {
		return 0, fmt.Errorf("listing MachinePools of Cluster %s: %w", cluster.Name, err)
	}
	return len(pools.Items), nil
}
