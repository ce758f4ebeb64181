package machinepool

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/nodemeta"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// recordRecheck is when it is looked whether the status was written that puts a pool on record; it may be held back.
const recordRecheck = 5 * time.Second

// Decide says what to do about a MachinePool.
//
//	                    bootstrap config, infrastructure pool
//	not there yet       wait; the watch on their kind wakes us
//	there, not ours     own it: controller owner, cluster label                      MP-01, MP-02
//	reporting           take over data secret, provider IDs, replicas                MP-02, MP-04, MP-09
//	has machines        one Machine for each, none for those that are gone;
//	                    they follow the template in place
//	back from a backup  wait for the rest of it                                      OR-01
//	has none            mark the Nodes; delete Nodes whose instance is gone          MP-05
func Decide(s Snapshot) loop.Plan {
	p := decide(s)
	p.RecheckIn(s.Nodes.Again)
	return p
}

func decide(s Snapshot) loop.Plan {
	if !s.Pool.DeletionTimestamp.IsZero() {
		return decideDeletion(s)
	}
	var p loop.Plan
	if s.Cluster == nil {
		p.WaitFor("ClusterNotFound", "Cluster %s does not exist; the pool goes on when it does", s.Pool.Spec.ClusterName)
		return p
	}
	if !ownership.Joined(s.Pool, s.Cluster) {
		p.Do(Join{Cluster: s.Cluster.Name})
		return p
	}
	decideReferences(s, &p)
	if denied := deniedReplicas(s); denied != "" {
		p.WaitFor("TooManyReplicas", "%s", denied)
	}
	if takeOver(s) {
		p.Do(TakeOver{})
	}
	if listed(s) && !takesList(s) {
		p.RecheckIn(recordRecheck)
	}
	decideMachines(s, &p)
	decideNodes(s, &p)
	return p
}

func decideReferences(s Snapshot, p *loop.Plan) {
	decideBootstrap(s, p)
	ref := s.Pool.Spec.Template.Spec.InfrastructureRef
	problem := infraProblem(s)
	switch {
	case s.Infra != nil && !owned(s.Infra.Object, s):
		p.Do(Own{Kind: ref.Kind, Name: ref.Name, What: infrastructure})
	case problem != "":
		p.WaitFor("InfrastructureUnreadable", "%s", problem)
		if s.KindProblem != "" {
			p.RecheckIn(unreadableRecheck) // a kind that is not installed is not watched
		}
	case s.Infra == nil:
		p.WaitFor("InfrastructureNotFound", "%s %s does not exist yet", ref.Kind, ref.Name)
	case !s.Infra.Provisioned.Or(false):
		p.WaitFor("InfrastructureNotProvisioned", "%s %s is not provisioned yet", ref.Kind, ref.Name)
	case s.Infra.Replicas.Or(0) > 0 && len(s.Infra.ProviderIDList.Or(nil)) == 0: // MP-04
		p.WaitFor("WaitingForProviderIDs", "%s %s has replicas and no provider IDs yet", ref.Kind, ref.Name)
	}
}

func decideBootstrap(s Snapshot, p *loop.Plan) {
	ref := s.Pool.Spec.Template.Spec.Bootstrap.ConfigRef
	if ref.Name == "" {
		return
	}
	problem := bootstrapProblem(s)
	switch {
	case s.Bootstrap != nil && !owned(s.Bootstrap.Object, s):
		p.Do(Own{Kind: ref.Kind, Name: ref.Name, What: bootstrapConfig})
	case problem != "":
		p.WaitFor("BootstrapConfigUnreadable", "%s", problem)
	case s.Bootstrap == nil:
		p.WaitFor("BootstrapConfigNotFound", "%s %s does not exist yet", ref.Kind, ref.Name)
	case !s.Bootstrap.DataSecretCreated.Or(false):
		p.WaitFor(clusterv1.WaitingForBootstrapDataReason, "%s %s has not created the bootstrap data yet", ref.Kind, ref.Name)
	case !bootstrapped(s):
		p.WaitFor(clusterv1.WaitingForBootstrapDataReason, "%s", unnamedSecret(ref))
	}
}

// bootstrapped reports whether the bootstrap config has created its Secret and says which it is.
func bootstrapped(s Snapshot) bool {
	return s.Bootstrap != nil && s.Bootstrap.DataSecretCreated.Or(false) && s.Bootstrap.DataSecretName.Or("") != ""
}

func unnamedSecret(ref clusterv1.ContractVersionedObjectReference) string {
	return fmt.Sprintf("Waiting for %s %s to name the Secret with the bootstrap data in status.dataSecretName: it reports that the Secret is created",
		ref.Kind, ref.Name)
}

// owned reports whether the pool is the controller of the object, which carries the cluster label.
func owned(o contract.Object, s Snapshot) bool {
	owner := metav1.GetControllerOf(o.Unstructured)
	return owner != nil && owner.UID == s.Pool.UID && o.GetLabels()[clusterv1.ClusterNameLabel] == s.Pool.Spec.ClusterName
}

// takeOver reports whether the spec has to follow what bootstrap and infrastructure say.
func takeOver(s Snapshot) bool {
	pool := s.Pool.DeepCopy()
	follow(s, pool)
	return !slices.Equal(pool.Spec.ProviderIDList, s.Pool.Spec.ProviderIDList) ||
		deref(pool.Spec.Replicas) != deref(s.Pool.Spec.Replicas) ||
		text(pool.Spec.Template.Spec.Bootstrap.DataSecretName) != text(s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName)
}

// follow makes the spec what bootstrap and infrastructure say. What they do not say stays (sticky).
func follow(s Snapshot, pool *clusterv1.MachinePool) {
	if bootstrapped(s) {
		name := s.Bootstrap.DataSecretName.Or("")
		pool.Spec.Template.Spec.Bootstrap.DataSecretName = &name
	}
	if s.Infra == nil || !s.Infra.Provisioned.Or(false) {
		return
	}
	if takesList(s) {
		pool.Spec.ProviderIDList = s.Infra.ProviderIDList.Or(nil)
	}
	if replicas, counted := s.Infra.Replicas.Get(); counted && scaledByOthers(s.Pool) && s.Policy.DeniedReplicas(replicas) == "" {
		pool.Spec.Replicas = &replicas
	}
}

// deniedReplicas says that the pool asks for more replicas than the operator allows, or that its infrastructure has more: the
// spec of one that others scale does not follow then, and no more Machines than are allowed are created.
func deniedReplicas(s Snapshot) string {
	if denied := s.Policy.DeniedReplicas(deref(s.Pool.Spec.Replicas)); denied != "" || s.Infra == nil {
		return denied
	}
	return s.Policy.DeniedReplicas(s.Infra.Replicas.Or(0))
}

// listed reports whether the infrastructure's list of provider IDs is one to go by: an empty list is, once it says
// that it has no replicas (MP-04).
func listed(s Snapshot) bool {
	if s.Infra == nil || !s.Infra.Provisioned.Or(false) || s.Infra.ProviderIDList.Err() != nil {
		return false
	}
	replicas, counted := s.Infra.Replicas.Get()
	return len(s.Infra.ProviderIDList.Or(nil)) > 0 || counted && replicas == 0
}

// scaledByOthers reports whether the number of replicas is the infrastructure's to say (MP-09).
func scaledByOthers(pool *clusterv1.MachinePool) bool {
	by, ok := pool.Annotations[clusterv1.ReplicasManagedByAnnotation]
	return ok && by != "false"
}

// decideNodes looks after the Nodes of a pool without Machines (MP-05).
func decideNodes(s Snapshot, p *loop.Plan) {
	if hasMachines(s) || !s.Nodes.Known || s.Infra == nil || infraProblem(s) != "" {
		return
	}
	for _, id := range sortedIDs(s) {
		node := s.Nodes.Items[id]
		if !marked(s.Pool, &node) {
			p.Do(MarkNode{Node: node.Name, ProviderID: id})
		}
	}
	if listed(s) {
		retire(s, p, "its provider ID left the pool")
	}
}

func retire(s Snapshot, p *loop.Plan, why string) {
	for _, node := range s.Nodes.Retired {
		if node.DeletionTimestamp.IsZero() {
			p.Do(DeleteNode{Node: node.Name, UID: node.UID, Why: why})
		}
	}
}

// marked reports whether the Node says which pool it is of, and is not held back any more.
func marked(pool *clusterv1.MachinePool, node *corev1.Node) bool {
	after := node.DeepCopy()
	mark(pool, after)
	return maps.Equal(after.Annotations, node.Annotations) && maps.Equal(after.Labels, node.Labels) &&
		len(after.Spec.Taints) == len(node.Spec.Taints)
}

// mark makes the Node say which pool it is of, and lets pods come.
func mark(pool *clusterv1.MachinePool, node *corev1.Node) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	maps.Copy(node.Annotations, map[string]string{
		clusterv1.ClusterNameAnnotation: pool.Spec.ClusterName, clusterv1.ClusterNamespaceAnnotation: pool.Namespace,
		clusterv1.OwnerKindAnnotation: "MachinePool", clusterv1.OwnerNameAnnotation: pool.Name,
	})
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, nodemeta.Labels(pool.Spec.Template.Labels))
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.MatchTaint(&clusterv1.NodeUninitializedTaint)
	})
}

func sortedIDs(s Snapshot) []string {
	ids := slices.Collect(maps.Keys(s.Nodes.Items))
	sort.Strings(ids)
	return ids
}

func deref(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
