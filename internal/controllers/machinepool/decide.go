package machinepool

import (
	"maps"
	"slices"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// recordRecheck is the interval for checking whether the status that records the pool was written, because the
// write may be deferred.
const recordRecheck = 5 * time.Second

// decide computes the plan for a MachinePool. Package reconciler calls it in each reconciliation, after observe. It is
// pure: it neither reads nor writes. Besides the actions of package reference for its provider objects:
//
//	bootstrap config done                   copy the name of the data Secret
//	infrastructure done                     copy provider IDs and, with external scaling, replicas
//	infrastructure has machines             maintain one Machine for each and delete the others; update Machines in place
//	                                        from the template; after a restore, first wait for all objects
//	infrastructure has none                 annotate the Nodes; delete Nodes whose instance is gone
func decide(s snapshot) reconciler.Plan {
	p := decidePool(s)
	p.RecheckIn(s.Nodes.RetryAfter)
	return p
}

func decidePool(s snapshot) reconciler.Plan {
	if !s.Pool.DeletionTimestamp.IsZero() {
		return decideDeletion(s)
	}
	var p reconciler.Plan
	if s.Cluster == nil {
		p.WaitFor("ClusterNotFound", "Waiting for Cluster %s to be created", s.Pool.Spec.ClusterName).For(clusterv1.ClusterKind, s.Pool.Spec.ClusterName).ToChange("")
		return p
	}
	if !ownership.IsInCluster(s.Pool, s.Cluster) {
		p.Do(joinCluster{Cluster: s.Cluster.Name})
		return p
	}
	decideReferences(s, &p)
	if denied := deniedReplicas(s); denied != "" {
		p.WaitFor("TooManyReplicas", "%s", denied).For("MachinePool", s.Pool.Name).UntilUserActs()
	}
	if needsProviderFields(s) {
		p.Do(copyFromProviders{})
	}
	if hasUsableList(s) && !followsList(s) {
		p.RecheckIn(recordRecheck)
	}
	decideMachines(s, &p)
	decideNodes(s, &p)
	return p
}

func decideReferences(s snapshot, p *reconciler.Plan) {
	s.bootstrap().Decide(p)
	infra := s.infra()
	infra.Decide(p)
	if text := s.repeatedIDs(); text != "" {
		p.WaitFor("DuplicateProviderIDs", "%s", text).For(infra.Ref.Kind, infra.Ref.Name).UntilUserActs()
	}
	if text := s.incompleteList(); text != "" {
		p.WaitFor("WaitingForProviderIDs", "%s", text).For(infra.Ref.Kind, infra.Ref.Name).ToChange(s.Infra.ProviderIDList.Path())
	}
}

// needsProviderFields reports whether the spec differs from the results of bootstrap config and infrastructure.
func needsProviderFields(s snapshot) bool {
	pool := s.Pool.DeepCopy()
	copyProviderFields(s, pool)
	return !slices.Equal(pool.Spec.ProviderIDList, s.Pool.Spec.ProviderIDList) ||
		ptr.Deref(pool.Spec.Replicas, 0) != ptr.Deref(s.Pool.Spec.Replicas, 0) ||
		text(pool.Spec.Template.Spec.Bootstrap.DataSecretName) != text(s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName)
}

// copyProviderFields copies the results of bootstrap config and infrastructure to the spec. Values that are not
// reported stay unchanged.
func copyProviderFields(s snapshot, pool *clusterv1.MachinePool) {
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

// deniedReplicas returns a message if the pool requests, or its infrastructure has, more replicas than the operator
// allows. The spec of an externally scaled pool is then not updated, and no more Machines are created than are
// allowed.
func deniedReplicas(s snapshot) string {
	if denied := s.Policy.DeniedReplicas(ptr.Deref(s.Pool.Spec.Replicas, 0)); denied != "" {
		return denied
	}
	return s.Policy.DeniedReplicas(s.Infra.Replicas.Or(0))
}

// hasUsableList reports whether the infrastructure's list of provider IDs is valid. An empty list is valid only if
// the reported number of replicas is 0.
func hasUsableList(s snapshot) bool {
	if !s.infra().IsDone() || s.Infra.ProviderIDList.Err() != nil {
		return false
	}
	replicas, counted := s.Infra.Replicas.Get()
	return len(s.Infra.ProviderIDList.Or(nil)) > 0 || counted && replicas == 0
}

// scaledByOthers reports whether the infrastructure determines the number of replicas.
func scaledByOthers(pool *clusterv1.MachinePool) bool {
	by, ok := pool.Annotations[clusterv1.ReplicasManagedByAnnotation]
	return ok && by != "false"
}

// decideNodes annotates and deletes the Nodes of a pool without Machines.
func decideNodes(s snapshot, p *reconciler.Plan) {
	if hasMachines(s) || !s.Nodes.Known || !hasUsableInfra(s) {
		return
	}
	if text := s.missingNodes(); text != "" {
		p.WaitFor("WaitingForNodes", "%s", text).For(s.infra().Ref.Kind, s.infra().Ref.Name).ToChange("")
	}
	for _, text := range s.nodeRivals() {
		p.WaitFor(ownership.ReasonNodesAmbiguous, "%s", text).For("MachinePool", s.Pool.Name).UntilUserActs()
	}
	for _, id := range sortedIDs(s) {
		node := s.Nodes.Items[id]
		if !isMarked(s, &node) {
			p.Do(markNode{Node: node.Name, ProviderID: id})
		}
	}
	if hasUsableList(s) {
		retire(s, p, "its provider ID left the pool")
	}
}

func retire(s snapshot, p *reconciler.Plan, why string) {
	for _, node := range s.Nodes.Retired {
		if node.DeletionTimestamp.IsZero() {
			p.Do(deleteNode{Node: node.Name, UID: node.UID, Why: why})
		}
	}
}

// isMarked reports whether mark would leave the Node unchanged.
func isMarked(s snapshot, node *corev1.Node) bool {
	after := node.DeepCopy()
	mark(s, after)
	return maps.Equal(after.Annotations, node.Annotations) && maps.Equal(after.Labels, node.Labels) &&
		len(after.Spec.Taints) == len(node.Spec.Taints)
}

// mark annotates the Node with its pool, sets the labels of the template, and removes the uninitialized taint.
func mark(s snapshot, node *corev1.Node) {
	pool := s.Pool
	machines.SyncNodeLabels(machines.NodeLabels(pool.Spec.Template.Labels, s.Settings.SyncLabels...), node)
	// SyncNodeLabels has replaced the annotations with a copy that is not nil.
	maps.Copy(node.Annotations, map[string]string{
		clusterv1.ClusterNameAnnotation: pool.Spec.ClusterName, clusterv1.ClusterNamespaceAnnotation: pool.Namespace,
		clusterv1.OwnerKindAnnotation: "MachinePool", clusterv1.OwnerNameAnnotation: pool.Name,
	})
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.MatchTaint(&clusterv1.NodeUninitializedTaint)
	})
}

func sortedIDs(s snapshot) []string {
	ids := slices.Collect(maps.Keys(s.Nodes.Items))
	sort.Strings(ids)
	return ids
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
