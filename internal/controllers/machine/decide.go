package machine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
)

// fillingRecheck is when a cache of the workload cluster that was still filling is
// asked again.
const fillingRecheck = 5 * time.Second

// nodeRecheck is when a Node is looked for again while the control plane is not initialized: until then nothing tells of
// Nodes.
const nodeRecheck = 2 * time.Second

// Decide says what to do about a Machine: about its provider objects what package link says, and then
//
//	bootstrap config done         take over the name of the data secret
//	infrastructure machine done   take over provider ID and failure domain
//	Node found                    annotate, label and untaint it, in one patch
//	updating in place             what package update says
func Decide(s Snapshot) loop.Plan {
	if deleting(s) {
		return decideDeletion(s)
	}
	var p loop.Plan
	if s.Cluster == nil {
		p.WaitFor("ClusterNotFound", "Waiting for Cluster %s to be created", s.Machine.Spec.ClusterName).For(clusterv1.ClusterKind, s.Machine.Spec.ClusterName).ToChange("")
		return p
	}
	if !isJoined(s) {
		p.Do(Join{Cluster: s.Cluster.Name})
		return p
	}
	s.bootstrap().Decide(&p)
	s.infra().Decide(&p)
	if takeOver(s) {
		p.Do(TakeOver{})
	}
	if n := s.Node.Item; n != nil && !metadataOf(s).IsSynced(n) {
		p.Do(SyncNode{Node: n.Name})
	}
	s.update().Decide(&p)
	decideRecheck(s, &p)
	return p
}

// isJoined reports whether the Machine has the label of its Cluster and, where nothing else owns it, the Cluster as owner.
func isJoined(s Snapshot) bool {
	return s.Machine.Labels[clusterv1.ClusterNameLabel] == s.Cluster.Name && (!standalone(s) || ownership.OwnedByCluster(s.Machine, s.Cluster))
}

// standalone Machines belong to no one but the Cluster. One with the label of an
// owner that it does not have was restored before that owner, which will adopt it.
func standalone(s Snapshot) bool {
	for _, label := range []string{clusterv1.MachineSetNameLabel, clusterv1.MachinePoolNameLabel, clusterv1.MachineControlPlaneNameLabel} {
		if _, ok := s.Machine.Labels[label]; ok {
			return false
		}
	}
	return metav1.GetControllerOf(s.Machine) == nil
}

// takeOver reports whether the spec has to follow bootstrap and infrastructure.
func takeOver(s Snapshot) bool {
	after := s.Machine.DeepCopy()
	follow(s, after)
	return after.Spec.ProviderID != s.Machine.Spec.ProviderID || after.Spec.FailureDomain != s.Machine.Spec.FailureDomain ||
		(after.Spec.Bootstrap.DataSecretName == nil) != (s.Machine.Spec.Bootstrap.DataSecretName == nil)
}

// follow makes the spec what bootstrap and infrastructure say. A
// data secret that is set stays, whoever set it. Where the machine was placed is
// reported in the status: the spec is what the user asks for.
func follow(s Snapshot, m *clusterv1.Machine) {
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

// decideRecheck asks to be woken when the passing of time changes a condition.
func decideRecheck(s Snapshot, p *loop.Plan) {
	if d := s.Deployment; d != nil && !d.Spec.Rollout.After.IsZero() {
		p.RecheckIn(d.Spec.Rollout.After.Sub(s.Now))
	}
	if s.Node.Down {
		p.RecheckIn(s.connectionGraceLeft())
		p.RecheckIn(s.nodesGraceLeft())
		if s.Connection.Good() { // its cache is still filling
			p.RecheckIn(fillingRecheck)
		}
	}
	if s.Node.Asked && !initialized(s) && providerID(s) != "" {
		p.RecheckIn(nodeRecheck)
	}
	set := condition.Set(s.Machine.Status.Conditions)
	if ready := set.Get(clusterv1.MachineReadyCondition); ready != nil && ready.Status == metav1.ConditionTrue {
		p.RecheckIn(availableIn(s, *ready))
	}
}

// availableIn is how long a Machine that is ready still has to be so until it is
// available.
func availableIn(s Snapshot, ready metav1.Condition) time.Duration {
	if s.Machine.Spec.MinReadySeconds == nil {
		return 0
	}
	need := time.Duration(*s.Machine.Spec.MinReadySeconds) * time.Second
	return max(0, need-s.Now.Sub(ready.LastTransitionTime.Time))
}
