package machinepool

import (
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
//	has machines        one Machine for each, none for those that are gone           MP-07
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
	template := s.Pool.Spec.Template.Spec
	if ref := template.Bootstrap.ConfigRef; ref.Name != "" {
		switch {
		case s.BootstrapProblem != "":
			p.WaitFor("BootstrapConfigUnreadable", "%s", s.BootstrapProblem)
		case s.Bootstrap == nil:
			p.WaitFor("BootstrapConfigNotFound", "%s %s does not exist yet", ref.Kind, ref.Name)
		case !owned(s.Bootstrap.Object, s):
			p.Do(Own{Kind: ref.Kind, Name: ref.Name, What: bootstrapConfig})
		case !s.Bootstrap.DataSecretCreated.Or(false):
			p.WaitFor(clusterv1.WaitingForBootstrapDataReason, "%s %s has not created the bootstrap data yet", ref.Kind, ref.Name)
		}
	}
	ref := template.InfrastructureRef
	switch {
	case s.InfraProblem != "":
		p.WaitFor("InfrastructureUnreadable", "%s", s.InfraProblem)
	case s.Infra == nil:
		p.WaitFor("InfrastructureNotFound", "%s %s does not exist yet", ref.Kind, ref.Name)
	case !owned(s.Infra.Object, s):
		p.Do(Own{Kind: ref.Kind, Name: ref.Name, What: infrastructure})
	case !s.Infra.Provisioned.Or(false):
		p.WaitFor("InfrastructureNotProvisioned", "%s %s is not provisioned yet", ref.Kind, ref.Name)
	case s.Infra.Replicas.Or(0) > 0 && len(s.Infra.ProviderIDList.Or(nil)) == 0: // MP-04
		p.WaitFor("WaitingForProviderIDs", "%s %s has replicas and no provider IDs yet", ref.Kind, ref.Name)
	}
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
	if s.Bootstrap != nil && s.Bootstrap.DataSecretCreated.Or(false) { // MP-02
		if name, ok := s.Bootstrap.DataSecretName.Get(); ok && name != "" {
			pool.Spec.Template.Spec.Bootstrap.DataSecretName = &name
		}
	}
	if s.Infra == nil || !s.Infra.Provisioned.Or(false) {
		return
	}
	if takesList(s) {
		pool.Spec.ProviderIDList = s.Infra.ProviderIDList.Or(nil)
	}
	if replicas, counted := s.Infra.Replicas.Get(); counted && scaledByOthers(s.Pool) { // MP-09
		pool.Spec.Replicas = &replicas
	}
}

// listed reports whether the infrastructure's list of provider IDs is one to go by: an empty list is, once it says
// that it has no replicas (MP-04).
func listed(s Snapshot) bool {
	if s.Infra == nil || !s.Infra.Provisioned.Or(false) {
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

// decideMachines keeps one Machine for each infrastructure machine (MP-07). None is made before the pool is whole, and
// none that the pool does not control is removed (OR-01).
func decideMachines(s Snapshot, p *loop.Plan) {
	if !hasMachines(s) {
		return
	}
	machines := map[string]bool{}
	for _, m := range s.Machines {
		machines[m.Name] = true
	}
	if !whole(s) {
		waitForParts(s, p)
	} else {
		for _, im := range s.InfraMachines {
			if !machines[im.GetName()] && im.GetDeletionTimestamp().IsZero() {
				p.Do(CreateMachine{Name: im.GetName(), Kind: im.GetKind()})
			}
		}
	}
	alone := bereft(s)
	for _, m := range s.Machines {
		switch {
		case !m.DeletionTimestamp.IsZero():
		case orphaned(s, m):
			p.Do(AdoptMachine{Machine: m.Name})
		case !controlled(s, m):
		case alone[m.Name]:
			decideBereft(s, m, p)
		default:
			decideMachine(s, m, p)
		}
	}
}

// decideBereft removes a Machine whose infrastructure machine is gone, and not one whose is still to come.
func decideBereft(s Snapshot, m clusterv1.Machine, p *loop.Plan) {
	if awaited(s, m) {
		p.WaitFor(waitingForRestore, "The infrastructure machine of Machine %s does not exist: restore it, or delete the Machine", m.Name)
		return
	}
	p.Do(DeleteMachine{Name: m.Name, Why: "its infrastructure machine is gone"})
}

// decideMachine keeps version and UpToDate condition of one Machine true (MP-07, MA-24).
func decideMachine(s Snapshot, m clusterv1.Machine, p *loop.Plan) {
	if running := kubeletVersion(s, m); running != "" && running != m.Spec.Version {
		p.Do(SetVersion{Machine: m.Name, Version: running})
		return
	}
	want := upToDate(s, m)
	have := conditionOf(m, clusterv1.MachineUpToDateCondition)
	if have == nil || have.Status != want.Status || have.Reason != want.Reason || have.Message != want.Message {
		p.Do(JudgeMachine{Machine: m.Name, Verdict: want})
	}
}

// orphaned reports whether a Machine with the labels of the pool has no controller, or this pool in an earlier life or
// an earlier version of the API (OR-01).
func orphaned(s Snapshot, m clusterv1.Machine) bool {
	owner := metav1.GetControllerOf(&m)
	if owner == nil {
		return true
	}
	return owner.Kind == "MachinePool" && owner.Name == s.Pool.Name &&
		(owner.UID != s.Pool.UID || owner.APIVersion != clusterv1.GroupVersion.String())
}

// hasMachines reports whether the infrastructure has a kind for its instances (IP2-03).
func hasMachines(s Snapshot) bool { return s.Infra != nil && s.Infra.MachineKind.Or("") != "" }

// kubeletVersion is the version that the Node of a Machine runs, empty where that is not known.
func kubeletVersion(s Snapshot, m clusterv1.Machine) string {
	if node, ok := s.Nodes.Items[m.Spec.ProviderID]; ok && m.Spec.ProviderID != "" {
		return node.Status.NodeInfo.KubeletVersion
	}
	if m.Status.NodeInfo != nil {
		return m.Status.NodeInfo.KubeletVersion
	}
	return ""
}

// decideNodes looks after the Nodes of a pool without Machines (MP-05).
func decideNodes(s Snapshot, p *loop.Plan) {
	if hasMachines(s) || !s.Nodes.Known || s.Infra == nil {
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
