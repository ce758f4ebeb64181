package machinedeployment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// This file prevents a MachineDeployment that is restored from a backup from replacing its Machines. Restored objects
// have no owner references, finalizers and status, and are restored in any order. Their labels, annotations and specs
// show which objects are still missing:
//
//	a MachineSet matches the selector and has no controller       adopt it
//	a Machine names a MachineSet that does not exist              that MachineSet is not restored yet
//	the deployment has a revision that no MachineSet has          the current MachineSet is not restored yet
//	the MachineSets together have fewer replicas than a rollout   another MachineSet is not restored yet
//	ever leaves, although the deployment was not scaled
//
// While anything is missing, no MachineSet is created, scaled or deleted. Except for the first row, this is checked
// only for a deployment that was not observed since its creation (package ownership), because users may delete
// MachineSets later.
//
// A restored Machine has lost its Node information and looks like a Machine that never had a Node, which a rollout
// would delete first. Therefore nothing is rolled out while the status of a Machine with a provider ID predates the
// read of its Node:
//
//	                                   restored deployment      observed deployment
//	no status yet                      wait                     wait: the Machine may have been restored later
//	workload cluster not reachable     wait                     wait: it ends with the connection
//	several Nodes have its ID          wait for a user          proceed: it never had a Node of its own, and the
//	                                                            rollout may replace it
//	no Node has its ID                 proceed                  proceed

// decideOwnership is the part of [decide] that adopts MachineSets. It reports whether the ownership is complete, so
// that Decide may continue. The workload cluster is not read, because a deployment creates no Machines; the MachineSets
// read it.
func decideOwnership(s snapshot, p *reconciler.Plan) bool {
	facts := ownership.Input{
		Kind: kind, Name: s.Deployment.Name, Cluster: s.Deployment.Spec.ClusterName, ClusterExists: s.Cluster != nil,
		Observed: observed(s), Hidden: s.Hidden, Workload: ownership.Workload{NodesRead: true},
	}
	for i := range s.Sets {
		child := ownership.Child{Kind: "MachineSet", Name: s.Sets[i].Name, Selected: true, Deleting: !s.Sets[i].DeletionTimestamp.IsZero()}
		if controls(s.Deployment, &s.Sets[i]) {
			child.Controller = ownership.ThisController
		}
		facts.Children = append(facts.Children, child)
	}
	if !observed(s) {
		facts.MissingChildren = absentSets(s)
	}
	verdict := ownership.Decide(facts)
	for _, name := range verdict.Adopt {
		p.Do(adoptSet{Set: name})
	}
	if verdict.IsComplete() {
		verdict.Reason, verdict.Message = missingSet(s)
		verdict.On, verdict.NeedsUser = []string{kind + " " + s.Deployment.Name}, true
	}
	if !verdict.IsComplete() {
		machines.AwaitOwnership(p, verdict)
	}
	return verdict.IsComplete()
}

// observed reports whether complete ownership was recorded for the deployment.
func observed(s snapshot) bool { return s.Deployment.Status.ObservedGeneration > 0 }

// absentSets returns the MachineSets that Machines name and that do not exist.
func absentSets(s snapshot) []string {
	names := map[string]bool{}
	for _, m := range s.OrphanedMachines {
		names["MachineSet "+cmp.Or(m.Labels[clusterv1.MachineSetNameLabel], "of Machine "+m.Name)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// missingSet returns why MachineSets of a restored deployment must still be missing although no label names them.
// The reason is empty if none are.
func missingSet(s snapshot) (reason, message string) {
	const instead = "restore it, or remove the annotation " + clusterv1.RevisionAnnotation + " from the MachineDeployment to start over"
	revision := revisionOf(s.Deployment)
	if observed(s) || revision == 0 {
		return "", ""
	}
	newest := int64(0)
	for i := range s.Sets {
		newest = max(newest, revisionOf(&s.Sets[i]))
	}
	switch {
	case newest < revision:
		return ownership.ReasonChildMissing, fmt.Sprintf("The MachineSet of revision %d does not exist: %s", revision, instead)
	case hasTooFewReplicas(s):
		return ownership.ReasonChildMissing, "A MachineSet does not exist, since the others have fewer replicas than a rollout leaves: " + instead
	}
	return "", ""
}

// hasTooFewReplicas reports whether the sum of replicas proves that MachineSets are missing.
func hasTooFewReplicas(s snapshot) bool {
	replicas := ptr.Deref(s.Deployment.Spec.Replicas, 0)
	limits, err := rollout.Resolve(s.Deployment.Spec.Rollout.Strategy, replicas)
	if err != nil {
		return true
	}
	var have, recorded int32
	for i := range s.Sets {
		v := setView(s, &s.Sets[i])
		have += max(v.Desired, v.Actual)
		recorded = max(recorded, v.Recorded)
	}
	return recorded == replicas && have < limits.MinAvailable(replicas)
}

// unknownNodes returns which Machines' Nodes have to be read before a rollout proceeds, or an empty string.
// blockedReason (decide.go) and [report] call it.
func unknownNodes(s snapshot) string {
	waiting, ambiguous := machinesWithUnknownNodes(s)
	switch {
	case len(waiting) > 0:
		return "Waiting for the Nodes of Machines " + condition.Names(waiting) + " to be read from the workload cluster; nothing is rolled out until then"
	case len(ambiguous) > 0:
		return "The provider IDs of Machines " + condition.Names(ambiguous) + " belong to several Nodes each, and nothing is rolled out after " +
			"a restore until one Node is left: delete the Nodes that do not belong to the Machines"
	}
	return ""
}

// machinesWithUnknownNodes returns the Machines whose Node was not read yet and, after a restore, the Machines
// whose provider ID several Nodes have.
func machinesWithUnknownNodes(s snapshot) (waiting, ambiguous []string) {
	for _, m := range machinesOf(s) {
		switch reason := nodeReason(m); {
		case m.Spec.ProviderID == "" || m.Status.NodeRef.IsDefined() || !m.DeletionTimestamp.IsZero():
		case slices.Contains([]string{"", clusterv1.MachineNodeInspectionFailedReason, clusterv1.MachineNodeConnectionDownReason}, reason):
			waiting = append(waiting, m.Name)
		case reason == ownership.ReasonNodesAmbiguous && !observed(s):
			ambiguous = append(ambiguous, m.Name)
		}
	}
	return waiting, ambiguous
}

// nodeReason returns the reason of a Machine's NodeHealthy condition, or an empty string if there is none yet.
func nodeReason(m *clusterv1.Machine) string {
	if c := condition.Set(m.Status.Conditions).Get(clusterv1.MachineNodeHealthyCondition); c != nil {
		return c.Reason
	}
	return ""
}
