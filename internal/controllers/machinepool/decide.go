package machinepool

import (
	"maps"
	"slices"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/nodemeta"
	"github.com/slipwayhq/slipway/internal/ownership"
)

// recordRecheck is when it is looked whether the status was written that puts a pool on record; it may be held back.
const recordRecheck = 5 * time.Second

// Decide says what to do about a MachinePool: about its provider objects what package link says, and then
//
//	bootstrap config done                   take over the name of the data secret
//	infrastructure done                     take over provider IDs and, where others scale, replicas
//	infrastructure has machines             one Machine for each, none for those that are gone; they follow the template in
//	                                        place; a pool that comes back from a backup waits for the rest of it first
//	infrastructure has none                 mark the Nodes; delete Nodes whose instance is gone
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
		p.WaitFor("ClusterNotFound", "Waiting for Cluster %s to be created", s.Pool.Spec.ClusterName).For(clusterv1.ClusterKind, s.Pool.Spec.ClusterName).ToChange("")
		return p
	}
	if !ownership.Joined(s.Pool, s.Cluster) {
		p.Do(Join{Cluster: s.Cluster.Name})
		return p
	}
	decideReferences(s, &p)
	if denied := deniedReplicas(s); denied != "" {
		p.WaitFor("TooManyReplicas", "%s", denied).For("MachinePool", s.Pool.Name).ForPerson()
	}
	if takeOver(s) {
		p.Do(TakeOver{})
	}
	if hasUsableList(s) && !followsList(s) {
		p.RecheckIn(recordRecheck)
	}
	decideMachines(s, &p)
	decideNodes(s, &p)
	return p
}

func decideReferences(s Snapshot, p *loop.Plan) {
	s.bootstrap().Decide(p)
	infra := s.infra()
	infra.Decide(p)
	if text := s.repeatedIDs(); text != "" {
		p.WaitFor("DuplicateProviderIDs", "%s", text).For(infra.Ref.Kind, infra.Ref.Name).ForPerson()
	}
	if text := s.incompleteList(); text != "" {
		p.WaitFor("WaitingForProviderIDs", "%s", text).For(infra.Ref.Kind, infra.Ref.Name).ToChange(s.Infra.ProviderIDList.Path())
	}
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
	if s.bootstrap().IsDone() {
		name := s.Bootstrap.DataSecretName.Or("")
		pool.Spec.Template.Spec.Bootstrap.DataSecretName = &name
	}
	if !s.infra().IsDone() {
		return
	}
	if followsList(s) {
		pool.Spec.ProviderIDList = s.instances().ids
	}
	if replicas, counted := s.Infra.Replicas.Get(); counted && scaledByOthers(s.Pool) && s.Policy.DeniedReplicas(replicas) == "" {
		pool.Spec.Replicas = &replicas
	}
}

// deniedReplicas says that the pool asks for more replicas than the operator allows, or that its infrastructure has more: the
// spec of one that others scale does not follow then, and no more Machines than are allowed are created.
func deniedReplicas(s Snapshot) string {
	if denied := s.Policy.DeniedReplicas(deref(s.Pool.Spec.Replicas)); denied != "" {
		return denied
	}
	return s.Policy.DeniedReplicas(s.Infra.Replicas.Or(0))
}

// hasUsableList reports whether the infrastructure's list of provider IDs is one to go by: an empty list is, once it says
// that it has no replicas.
func hasUsableList(s Snapshot) bool {
	if !s.infra().IsDone() || s.Infra.ProviderIDList.Err() != nil {
		return false
	}
	replicas, counted := s.Infra.Replicas.Get()
	return len(s.Infra.ProviderIDList.Or(nil)) > 0 || counted && replicas == 0
}

// scaledByOthers reports whether the number of replicas is the infrastructure's to say.
func scaledByOthers(pool *clusterv1.MachinePool) bool {
	by, ok := pool.Annotations[clusterv1.ReplicasManagedByAnnotation]
	return ok && by != "false"
}

// decideNodes looks after the Nodes of a pool without Machines.
func decideNodes(s Snapshot, p *loop.Plan) {
	if hasMachines(s) || !s.Nodes.Known || !hasUsableInfra(s) {
		return
	}
	if text := s.missingNodes(); text != "" {
		p.WaitFor("WaitingForNodes", "%s", text).For(s.infra().Ref.Kind, s.infra().Ref.Name).ToChange("")
	}
	for _, text := range s.nodeRivals() {
		p.WaitFor(ownership.ReasonNodesAmbiguous, "%s", text).For("MachinePool", s.Pool.Name).ForPerson()
	}
	for _, id := range sortedIDs(s) {
		node := s.Nodes.Items[id]
		if !isMarked(s, &node) {
			p.Do(MarkNode{Node: node.Name, ProviderID: id})
		}
	}
	if hasUsableList(s) {
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

// isMarked reports whether the Node says which pool it is of, and is not held back any more.
func isMarked(s Snapshot, node *corev1.Node) bool {
	after := node.DeepCopy()
	mark(s, after)
	return maps.Equal(after.Annotations, node.Annotations) && maps.Equal(after.Labels, node.Labels) &&
		len(after.Spec.Taints) == len(node.Spec.Taints)
}

// mark makes the Node say which pool it is of, gives it the labels of the template, and lets Pods come.
func mark(s Snapshot, node *corev1.Node) {
	pool := s.Pool
	nodemeta.Track(nodemeta.Labels(pool.Spec.Template.Labels, s.Settings.SyncLabels...), node)
	maps.Copy(node.Annotations, map[string]string{
		clusterv1.ClusterNameAnnotation: pool.Spec.ClusterName, clusterv1.ClusterNamespaceAnnotation: pool.Namespace,
		clusterv1.OwnerKindAnnotation: "MachinePool", clusterv1.OwnerNameAnnotation: pool.Name,
	})
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
