package machine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// fillingRecheck is the interval for reading from a workload cluster whose cache is not synced yet.
const fillingRecheck = 5 * time.Second

// nodeRecheck is the interval for looking up a Node before the control plane is initialized, because Nodes are not
// watched until then.
const nodeRecheck = 2 * time.Second

// decide computes the plan for a Machine. Package reconciler calls it in each reconciliation, again after the reads
// that it requests. It is pure: it neither reads nor writes. Besides the actions of package reference for its provider
// objects:
//
//	bootstrap config done         copy the name of the data Secret
//	infrastructure machine done   copy provider ID and failure domain
//	Node found                    set annotations and labels, remove taints, in one patch
//	updating in place             the plan of inplaceupdate.go
func decide(s snapshot) reconciler.Plan {
	if deleting(s) {
		return decideDeletion(s)
	}
	var p reconciler.Plan
	if s.Cluster == nil {
		p.WaitFor("ClusterNotFound", "Waiting for Cluster %s to be created", s.Machine.Spec.ClusterName).For(clusterv1.ClusterKind, s.Machine.Spec.ClusterName).ToChange("")
		return p
	}
	if !isJoined(s) {
		p.Do(joinCluster{Cluster: s.Cluster.Name})
		return p
	}
	s.bootstrap().Decide(&p)
	s.infra().Decide(&p)
	if needsProviderFields(s) {
		p.Do(copyFromProviders{})
	}
	if n := s.Node.Item; n != nil && !metadataOf(s).IsSynced(n) {
		p.Do(syncNode{Node: n.Name})
	}
	s.update().Decide(&p)
	decideRecheck(s, &p)
	return p
}

// isJoined reports whether the Machine has the label of its Cluster and, if it has no other owner, the Cluster as
// its owner.
func isJoined(s snapshot) bool {
	return s.Machine.Labels[clusterv1.ClusterNameLabel] == s.Cluster.Name && (!standalone(s) || ownership.OwnedByCluster(s.Machine, s.Cluster))
}

// standalone reports whether the Machine has no owner besides the Cluster. A Machine with the label of an owner
// that it does not have was restored before that owner, which will adopt it.
func standalone(s snapshot) bool {
	for _, label := range []string{clusterv1.MachineSetNameLabel, clusterv1.MachinePoolNameLabel, clusterv1.MachineControlPlaneNameLabel} {
		if _, ok := s.Machine.Labels[label]; ok {
			return false
		}
	}
	return metav1.GetControllerOf(s.Machine) == nil
}

// needsProviderFields reports whether the spec differs from the results of bootstrap config and infrastructure machine.
func needsProviderFields(s snapshot) bool {
	after := s.Machine.DeepCopy()
	copyProviderFields(s, after)
	return after.Spec.ProviderID != s.Machine.Spec.ProviderID || after.Spec.FailureDomain != s.Machine.Spec.FailureDomain ||
		(after.Spec.Bootstrap.DataSecretName == nil) != (s.Machine.Spec.Bootstrap.DataSecretName == nil)
}

// copyProviderFields copies the results of bootstrap config and infrastructure machine to the spec. A data Secret that
// is already set is never replaced. The actual failure domain is reported in the status, because the spec contains the
// user's request.
func copyProviderFields(s snapshot, m *clusterv1.Machine) {
	if s.bootstrap().IsDone() && m.Spec.Bootstrap.DataSecretName == nil {
		name := s.Bootstrap.DataSecretName.Or("")
		m.Spec.Bootstrap.DataSecretName = &name
	}
	if !s.infra().IsDone() {
		return
	}
	m.Spec.ProviderID = s.Infra.ProviderID.Or("")
	if domain := s.Infra.SpecFailureDomain.Or(""); domain != "" {
		m.Spec.FailureDomain = domain
	}
}

// decideRecheck schedules a reconciliation for the time at which a condition changes without an event.
func decideRecheck(s snapshot, p *reconciler.Plan) {
	if d := s.Deployment; d != nil && !d.Spec.Rollout.After.IsZero() {
		p.RecheckIn(d.Spec.Rollout.After.Sub(s.Now))
	}
	if s.Node.Unreachable {
		p.RecheckIn(s.connectionGraceLeft())
		p.RecheckIn(s.nodesGraceLeft())
		if s.Connection.IsHealthy() { // the cache is not synced yet
			p.RecheckIn(fillingRecheck)
		}
	}
	if s.Node.WasRead && !initialized(s) && providerID(s) != "" {
		p.RecheckIn(nodeRecheck)
	}
	set := condition.Set(s.Machine.Status.Conditions)
	if ready := set.Get(clusterv1.MachineReadyCondition); ready != nil && ready.Status == metav1.ConditionTrue {
		p.RecheckIn(availableIn(s, *ready))
	}
}

// availableIn returns how much longer a ready Machine has to stay ready before it counts as available. Decide rechecks
// the Machine after this time; until then, the condition Available is False.
func availableIn(s snapshot, ready metav1.Condition) time.Duration {
	if s.Machine.Spec.MinReadySeconds == nil {
		return 0
	}
	need := time.Duration(*s.Machine.Spec.MinReadySeconds) * time.Second
	return max(0, need-s.Now.Sub(ready.LastTransitionTime.Time))
}
