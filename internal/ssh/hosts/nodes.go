package hosts

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// The kubelet of a host that was released before it was clean registers its Node again when the host starts, although the Machine
// and the Node were deleted. The Node of a worker has the taint node.cluster.x-k8s.io/uninitialized: kubeadm writes it to the
// flags of the kubelet (kubeadm-flags.env), and only the controller of its Machine would remove it, so that no Pod without a
// toleration is scheduled there. A control plane host has no such flag, but its kubelet uses the API server on the host, which
// does not start: KubeadmControlPlane has removed the etcd member, so etcd exits. Only with an external etcd cluster does the
// kubelet register the Node. The cleaning stops the kubelet. Nothing else deletes the Node then, so this controller does.

const (
	// nodeTimeout is the time since the end of the cleaning after which a host is available although its workload cluster does not
	// respond, so that a cluster cannot withhold hosts.
	nodeTimeout = 2 * time.Minute
	// nodeRecheck is the delay before the Nodes are read again.
	nodeRecheck = 2 * time.Second
)

// readNodes reads the Nodes of a claim in the Cluster of its SSHMachine.
type readNodes struct {
	Cluster    client.ObjectKey
	ProviderID string
}

func (a readNodes) String() string {
	return fmt.Sprintf("the Nodes of Cluster %s with provider ID %s", a.Cluster, a.ProviderID)
}

// deleteNode deletes the Node that a host has registered after its Machine was deleted.
type deleteNode struct {
	Cluster client.ObjectKey
	Node    string
	UID     types.UID
}

func (a deleteNode) String() string {
	return fmt.Sprintf("delete Node %s of Cluster %s: the host is clean, and its Machine is gone", a.Node, a.Cluster)
}

// nodeSearch is the result of the search for the Nodes of the claim.
type nodeSearch struct {
	// Nodes are the names and UIDs of those that have to be deleted.
	Nodes []corev1.Node
	// Problem is the reason why the Nodes could not be read. Empty: there was none.
	Problem string
}

// clusterOfClaim returns the Cluster of the released claim. The namespace is the one of the SSHMachine that claimed the host, so
// that its users can name only Clusters of their own. The record on the host, which users can change, is not considered.
func (s snapshot) clusterOfClaim() client.ObjectKey {
	claim := s.Object.Status.Claim
	if claim == nil || s.Machine != nil {
		return client.ObjectKey{} // the controller of the Machine deletes the Node
	}
	return client.ObjectKey{Namespace: claim.Namespace, Name: claim.ClusterName}
}

// decideEnd ends the cleaning of a host that is clean. If the SSHMachine is gone, the Node is deleted first, for as long as
// nodeTimeout.
func decideEnd(s snapshot, p *reconciler.Plan, claimID string) int {
	cluster, inTime := s.clusterOfClaim(), s.Now.Sub(s.Cleaning.Ended) < nodeTimeout
	switch {
	case cluster.Name == "" || s.Object.Status.Claim.ClaimID != claimID:
		p.Do(finishCleaning{Claim: claimID})
	case s.Nodes == nil:
		p.Reads = append(p.Reads, readNodes{Cluster: cluster, ProviderID: inventory.ProviderID(claimID)})
		return stageCleaning
	case s.Nodes.Problem == "" && len(s.Nodes.Nodes) == 0:
		p.Do(finishCleaning{Claim: claimID})
	case !inTime:
		p.Do(finishCleaning{Claim: claimID, Remains: fmt.Sprintf("the Node with provider ID %s may remain in Cluster %s: delete it", inventory.ProviderID(claimID), cluster)})
	default:
		for _, n := range s.Nodes.Nodes {
			p.Do(deleteNode{Cluster: cluster, Node: n.Name, UID: n.UID})
		}
		p.WaitFor(reasonNode, "The host is clean. Waiting for Cluster %s to confirm that the Node of the host is deleted, for at most %s", cluster, nodeTimeout).
			For(clusterv1.ClusterKind, cluster.String()).ForTime()
		p.RecheckIn(nodeRecheck)
		return stageCleaning
	}
	p.RecheckIn(immediateRecheck)
	return stageCleaning
}

// readNodes reads the Nodes of a claim. A Cluster that does not exist or is being deleted has none. An error of the workload
// cluster is part of the result, because it must not delay the host by the backoff of errors.
func (c *controller) readNodes(ctx context.Context, r readNodes) (*nodeSearch, error) {
	cluster, err := infrastructure.ReadObject(ctx, c.client, r.Cluster.Namespace, r.Cluster.Name, &clusterv1.Cluster{})
	if err != nil || cluster == nil || !cluster.DeletionTimestamp.IsZero() {
		return &nodeSearch{}, err
	}
	nodes, err := c.Workloads.Nodes(ctx, r.Cluster, r.ProviderID)
	if err != nil {
		return &nodeSearch{Problem: err.Error()}, nil
	}
	out := &nodeSearch{}
	for _, n := range nodes {
		if n.Spec.ProviderID == r.ProviderID && n.DeletionTimestamp.IsZero() {
			out.Nodes = append(out.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID}})
		}
	}
	return out, nil
}

// deleteNode deletes a Node. Errors are of kind Unreachable, because the workload cluster must not delay the host by the
// backoff of other errors.
func (c *controller) deleteNode(ctx context.Context, a deleteNode) error {
	workload, err := c.Workloads.Client(ctx, a.Cluster)
	if err == nil {
		err = c.writer.WithClient(workload).DeleteAnyway(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.Node, UID: a.UID}})
	}
	if err == nil || fault.KindOf(err) == fault.Conflict { // a conflict means another Node with the same name
		return nil
	}
	return fault.New(fault.Unreachable, reasonNode, "Node %s of Cluster %s cannot be deleted", a.Node, a.Cluster).RetryIn(nodeRecheck).From(err)
}
