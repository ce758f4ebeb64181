package machineset

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

const (
	// missingRecheck is the interval for reading a missing object again, because a kind that is not installed yet
	// cannot be watched.
	missingRecheck = 30 * time.Second
	// unansweredRecheck is the retry interval for a workload cluster that did not respond, for example because its
	// cache is not synced yet.
	unansweredRecheck = 5 * time.Second
	// preflightRecheck is the retry interval for failed preflight checks.
	preflightRecheck = 15 * time.Second
)

// topologyFinalizer delays the deletion of a MachineSet in a managed topology until its templates are deleted.
const topologyFinalizer = clusterv1.MachineSetTopologyFinalizer

// Reasons of waits that the condition ScalingUp repeats, except for waitForCache, waitForMove and waitForUpdate. The
// condition ScalingDown repeats the last two.
const (
	waitForTemplate   = "WaitingForTemplate"
	waitForPreflight  = "PreflightCheckFailed"
	waitForPermission = "MachineCreateDisabled"
	waitForPolicy     = "ReplicasNotAllowed"
	waitForName       = "InvalidNamingTemplate"
	waitForCache      = "WaitingForCache"
	waitForMove       = "WaitingForHandOver"
	waitForUpdate     = "WaitingForInPlaceUpdate"
)

// decide computes the plan for a MachineSet. Package reconciler calls it in each reconciliation, again after the reads
// that it requests. It is pure: it neither reads nor writes. Clones are
// the bootstrap configs and infrastructure machines of the Machines. From top to bottom:
//
//	not joined to its Cluster                   join it
//	in a managed topology                       add its finalizer
//	owners of Machines unknown                  adopt Machines that match, or wait
//	templates of a standalone MachineSet        make the Cluster their owner
//	Machine differs from the template           propagate in place, clones first
//	clones without a Machine                    delete
//	Machine transferred to it and acknowledged  begin its update in place                          transfer.go
//	UpToDate (standalone), OwnerRemediated      set
//	unhealthy Machines                          delete, within the limit
//	too few, too many                           create; delete or transfer
func decide(s snapshot) reconciler.Plan {
	if isDeleting(s) {
		return decideDeletion(s)
	}
	var p reconciler.Plan
	switch {
	case s.Cluster != nil && !isJoined(s):
		p.Do(joinCluster{Cluster: s.Cluster.Name})
	case s.Settings.Topology && clone.IsOfTopology(s.Set) && !controllerutil.ContainsFinalizer(s.Set, topologyFinalizer):
		p.Do(clone.AddFinalizer{Finalizer: topologyFinalizer})
	}
	verdict := ownership.Decide(ownershipInput(s))
	for _, name := range verdict.Adopt {
		p.Do(adoptMachine{Machine: name})
	}
	if !verdict.IsComplete() {
		machines.AwaitOwnership(&p, verdict)
		if verdict.Reason == ownership.ReasonWorkloadUnknown && s.Unanswered {
			p.RecheckIn(unansweredRecheck)
		}
		return p
	}
	state := s.State()
	if state.NeedsClones() || s.Clones == nil && len(dueUpdates(s)) > 0 {
		p.Reads = []reconciler.ReadRequest{askClones{}}
		return p
	}
	if isStandalone(s.Set) { // the MachineDeployment does this for its MachineSets
		p.Do(s.templates().OwnedBy(s.Cluster)...)
	}
	p.Do(state.Propagation()...)
	beginUpdates(s, &p)
	blockers := creationBlockers(s)
	r := remediation(s, replacementBlockers(blockers))
	p.Do(state.SetConditions(r)...)
	if s.Clones != nil && slices.ContainsFunc(s.Machines, state.IsUndecided) {
		p.RecheckIn(missingRecheck) // clones are not watched
	}
	remediate(r, blockers, &p)
	scale(s, blockers, &p)
	return p
}

// decideDeletion is the part of [decide] for a MachineSet that is being deleted. It deletes the Machines, then the
// templates of a managed topology. The finalizer is removed last.
func decideDeletion(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	var deleted, left machines.OwnedMachines
	for _, m := range s.Machines {
		if m.Deleted {
			deleted = append(deleted, m)
		} else {
			left = append(left, m)
		}
	}
	state := s.State()
	state.Members, state.Clones = deleted, nil
	p.Do(state.Propagation()...)
	deleteMachines(&p, machines.List(left.Machines()).Names(), "the MachineSet is deleted")
	if n := count(s); n > 0 {
		p.WaitFor(clusterv1.MachineSetDeletingReason, "Waiting for %d Machines to be deleted%s", n, s.Machines.Held()).
			ForAll("Machine", machines.List(s.Machines.Machines()).Names()).ToChange("")
	}
	if len(s.Created) > 0 {
		p.RecheckIn(machines.PendingRecheck)
	}
	if p.Idle() {
		s.templates().Release(s.Set, topologyFinalizer, s.Used, &p)
	}
	return p
}

// isJoined reports whether the MachineSet has the label of its Cluster and, if it is standalone, the Cluster as its
// owner.
func isJoined(s snapshot) bool {
	if s.Set.Labels[clusterv1.ClusterNameLabel] != s.Cluster.Name {
		return false
	}
	return !isStandalone(s.Set) || ownership.OwnedByCluster(s.Set, s.Cluster)
}

// isStandalone reports whether a MachineSet has no owner besides its Cluster. A MachineSet with the label of a
// MachineDeployment was created by it, or restored before it.
func isStandalone(set *clusterv1.MachineSet) bool {
	_, labelled := set.Labels[clusterv1.MachineDeploymentNameLabel]
	return !labelled && metav1.GetControllerOfNoCopy(set) == nil
}

func ownershipInput(s snapshot) ownership.Input {
	f := ownership.Input{
		Kind: setKind, Name: s.Set.Name, Cluster: s.Set.Spec.ClusterName, ClusterExists: s.Cluster != nil,
		Owned: s.Deployment != nil, Observed: s.Set.Status.ObservedGeneration > 0, Hidden: s.Hidden,
		Workload: s.Workload,
	}
	if name, ok := s.Set.Labels[clusterv1.MachineDeploymentNameLabel]; ok {
		f.Parent = deploymentKind + " " + name
	}
	for _, m := range s.Others {
		f.Children = append(f.Children, ownership.Child{
			Kind: "Machine", Name: m.Name, Selected: selects(s.Set, m), Controller: ownership.ControllerOfChild(m, setKind, s.Set),
			Deleting: !m.DeletionTimestamp.IsZero(),
		})
	}
	return f
}

// creationBlockers returns why no Machines can be created, in the order in which to solve the problems. The condition
// ScalingUp also computes them, since Decide may return before it does.
func creationBlockers(s snapshot) []reconciler.Wait {
	var p reconciler.Plan
	for _, template := range s.templates().Unusable() {
		template.Await(&p, waitForTemplate, "")
	}
	if s.Set.Annotations[clusterv1.DisableMachineCreateAnnotation] == "true" {
		p.WaitFor(waitForPermission, "Annotation "+clusterv1.DisableMachineCreateAnnotation+" of the MachineSet is true: no Machine is created until it is removed").
			For(setKind, s.Set.Name).ToChange("metadata.annotations")
	}
	if denied := s.Settings.Policy.DeniedReplicas(ptr.Deref(s.Set.Spec.Replicas, 0)); denied != "" {
		p.WaitFor(waitForPolicy, "%s", denied).For(setKind, s.Set.Name).UntilUserActs()
	}
	for _, blocker := range preflightBlockers(s) {
		wait := p.WaitFor(waitForPreflight, "%s", blocker.Message).For(s.Cluster.Spec.ControlPlaneRef.Kind, s.Cluster.Spec.ControlPlaneRef.Name)
		if blocker.Invalid {
			wait.UntilUserActs()
		} else {
			wait.ToChange("spec.version and status.versions")
		}
	}
	return p.Waits
}

// replacementBlockers returns the blockers that also prevent the deletion of unhealthy Machines, because no
// replacement could be created.
func replacementBlockers(blockers []reconciler.Wait) []string {
	var out []string
	for _, w := range blockers {
		if w.Reason == waitForPreflight || w.Reason == waitForPolicy {
			out = append(out, w.Message)
		}
	}
	return out
}

// selects reports whether the selector of the MachineSet matches the Machine.
func selects(set *clusterv1.MachineSet, m *clusterv1.Machine) bool {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(m.Labels))
}

// deleteMachines adds actions that delete Machines.
func deleteMachines(p *reconciler.Plan, names []string, why string) {
	for part := range slices.Chunk(names, batch) {
		p.Do(machines.DeleteMachines{Names: part, Why: why})
	}
}

// batch is the maximum number of Machines that one action creates or deletes.
const batch = 50
