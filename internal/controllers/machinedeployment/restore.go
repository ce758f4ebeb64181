package machinedeployment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// Restored objects come back without owners, finalizers and status, in any order. What is left of the former order are
// labels, annotations and specs, and from them it can be told what is still missing:
//
//	a MachineSet matches the selector, and nobody controls it     adopt it
//	a Machine names a MachineSet that does not exist              that MachineSet is not there yet
//	the deployment has a revision that no MachineSet has          the current MachineSet is not there yet
//	the MachineSets together have fewer replicas than a rollout   another MachineSet is not there yet
//	ever leaves, though the deployment was not scaled
//
// While anything is missing no MachineSet is created, scaled or deleted. All but the first are only asked about a
// deployment that was not observed since it came into being (package ownership): later, users may delete MachineSets.
//
// A restored Machine has lost what was known of its Node, and looks like one that never had any: a rollout would delete it
// first. So nothing is rolled out while a Machine with a provider ID has a status that does not come from a look at the Nodes:
//
//	                                   restored deployment      observed deployment
//	no status yet                      wait                     wait: the Machine may have been restored later
//	workload cluster not reachable     wait                     wait: it ends with the connection
//	several Nodes have its ID          wait, a person decides   go on: it never had a Node of its own, and the rollout may be
//	                                                            what gets rid of it
//	no Node has its ID                 go on                    go on

// decideOwnership adopts, and reports whether the ownership is complete. It makes no Machines, so it need not have seen
// the workload cluster: the MachineSets do.
func decideOwnership(s Snapshot, p *loop.Plan) bool {
	facts := ownership.Facts{
		Kind: kind, Name: s.Deployment.Name, Cluster: s.Deployment.Spec.ClusterName, ClusterExists: s.Cluster != nil,
		Observed: observed(s), Hidden: s.Hidden, Workload: ownership.Workload{Seen: true},
	}
	for i := range s.Sets {
		child := ownership.Child{Kind: "MachineSet", Name: s.Sets[i].Name, Selected: true, Deleting: !s.Sets[i].DeletionTimestamp.IsZero()}
		if controls(s.Deployment, &s.Sets[i]) {
			child.Controller = ownership.Self
		}
		facts.Children = append(facts.Children, child)
	}
	if !observed(s) {
		facts.Absent = absent(s)
	}
	verdict := ownership.Judge(facts)
	for _, name := range verdict.Adopt {
		p.Do(Adopt{Set: name})
	}
	if verdict.Whole() {
		verdict.Reason, verdict.Message = lacking(s)
	}
	if !verdict.Whole() {
		p.WaitFor(verdict.Reason, "%s", verdict.Message)
		p.RecheckIn(verdict.Recheck)
	}
	return verdict.Whole()
}

// observed reports whether a pass with everything in its place is on record.
func observed(s Snapshot) bool { return s.Deployment.Status.ObservedGeneration > 0 }

// absent names the MachineSets that Machines name and that do not exist.
func absent(s Snapshot) []string {
	names := map[string]bool{}
	for _, m := range s.Strays {
		names["MachineSet "+cmp.Or(m.Labels[clusterv1.MachineSetNameLabel], "of Machine "+m.Name)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// lacking says which MachineSets of a restored deployment have not come back yet, though nothing names them; no reason:
// none.
func lacking(s Snapshot) (reason, message string) {
	const instead = "restore it, or remove the annotation " + clusterv1.RevisionAnnotation + " from the MachineDeployment to start anew"
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
	case tooFew(s):
		return ownership.ReasonChildMissing, "A MachineSet does not exist, since the others have fewer replicas than a rollout leaves: " + instead
	}
	return "", ""
}

// tooFew reports whether the MachineSets cannot be all there are.
func tooFew(s Snapshot) bool {
	replicas := deref(s.Deployment.Spec.Replicas)
	limits, err := rollout.Resolve(s.Deployment.Spec.Rollout.Strategy, replicas)
	if err != nil {
		return true
	}
	var have, recorded int32
	for i := range s.Sets {
		v := view(s, &s.Sets[i])
		have += max(v.Desired, v.Actual)
		recorded = max(recorded, v.Recorded)
	}
	return recorded == replicas && have < limits.MinAvailable(replicas)
}

// unseen says which Machines' Nodes have to be looked at before a rollout goes on, empty: none.
func unseen(s Snapshot) string {
	var waiting, ambiguous []string
	for _, m := range machinesOf(s) {
		switch reason := nodeReason(m); {
		case m.Spec.ProviderID == "" || m.Status.NodeRef.IsDefined() || !m.DeletionTimestamp.IsZero():
		case slices.Contains([]string{"", clusterv1.MachineNodeInspectionFailedReason, clusterv1.MachineNodeConnectionDownReason}, reason):
			waiting = append(waiting, m.Name)
		case reason == ownership.ReasonNodesAmbiguous && !observed(s):
			ambiguous = append(ambiguous, m.Name)
		}
	}
	switch {
	case len(waiting) > 0:
		return "Waiting for the Nodes of Machines " + condition.Names(waiting) + " to be looked up in the workload cluster; nothing is rolled out until then"
	case len(ambiguous) > 0:
		return "The provider IDs of Machines " + condition.Names(ambiguous) + " belong to several Nodes each, and nothing is rolled out after " +
			"a restore until one Node is left: delete the Nodes that do not belong to the Machines"
	}
	return ""
}

// nodeReason is what was found about a Machine's Node, empty: nothing yet.
func nodeReason(m clusterv1.Machine) string {
	if c := condition.Set(m.Status.Conditions).Get(clusterv1.MachineNodeHealthyCondition); c != nil {
		return c.Reason
	}
	return ""
}
