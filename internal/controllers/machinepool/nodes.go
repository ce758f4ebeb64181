package machinepool

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/workload"
)

// readNodes is the step of observe that reads the pool's Nodes from the workload cluster. An unreachable workload
// cluster is recorded in the snapshot and is not an error.
func (c *controller) readNodes(ctx context.Context, s *snapshot) error {
	s.Nodes.Items, s.Nodes.Duplicates = map[string]corev1.Node{}, map[string][]string{}
	if s.Cluster == nil || !ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false) {
		s.Nodes.Problem = "the control plane is not initialized yet"
		return nil
	}
	key := client.ObjectKeyFromObject(s.Cluster)
	err := c.watchNodes(ctx, key)
	for _, id := range s.instances().ids {
		if err != nil {
			break
		}
		var found []corev1.Node
		if found, err = c.workloads.Nodes(ctx, key, id); err == nil && len(found) == 1 {
			s.Nodes.Items[id] = found[0]
		}
		if len(found) > 1 {
			s.Nodes.Duplicates[id] = namesOf(found)
		}
	}
	if err == nil {
		s.Nodes.Retired, err = c.retired(ctx, *s)
	}
	if fault.KindOf(err) == fault.Unreachable {
		s.Nodes = unreachableNodes(err)
		return nil
	}
	s.Nodes.Known = err == nil
	return err
}

func namesOf(nodes []corev1.Node) []string {
	names := make([]string, 0, len(nodes))
	for i := range nodes {
		names = append(names, nodes[i].Name)
	}
	slices.Sort(names)
	return names
}

// unreachableNodes returns the state of the Nodes if the workload cluster did not respond.
func unreachableNodes(err error) observedNodes {
	if again := workload.RetryAfter(err); again > 0 {
		return observedNodes{Problem: "the workload cluster did not answer", RetryAfter: again}
	}
	return observedNodes{Problem: "the workload cluster is not connected"}
}

// retired returns Nodes in the status that still exist although their instance is gone.
func (c *controller) retired(ctx context.Context, s snapshot) ([]corev1.Node, error) {
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		return nil, err
	}
	ids := s.instances().ids
	var out []corev1.Node
	for _, ref := range s.Pool.Status.NodeRefs {
		node := corev1.Node{}
		err := workload.Get(ctx, client.ObjectKey{Name: ref.Name}, &node)
		if apierrors.IsNotFound(err) || err == nil && node.UID != ref.UID { // another Node with the same name does not belong to the pool
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading Node %s: %w", ref.Name, err)
		}
		if isLeftBehind(s, node, ids) {
			out = append(out, node)
		}
	}
	return out, nil
}

// isLeftBehind reports whether a Node of the pool remains without its instance: its provider ID is set and not in
// the list. If the pool is being deleted, every Node that was not found by its provider ID counts.
func isLeftBehind(s snapshot, node corev1.Node, ids []string) bool {
	if !s.Pool.DeletionTimestamp.IsZero() {
		item, found := s.Nodes.Items[node.Spec.ProviderID]
		return !found || item.UID != node.UID
	}
	return node.Spec.ProviderID != "" && !slices.Contains(ids, node.Spec.ProviderID)
}
