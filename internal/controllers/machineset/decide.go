package machineset

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
)

const (
	// missingRecheck is when a reference to nothing is followed again: a kind that is not installed yet cannot be
	// watched.
	missingRecheck = 30 * time.Second
	// unseenRecheck is when the workload cluster is looked at again where its cache was still filling.
	unseenRecheck = 5 * time.Second
	// createdRecheck is when the cache is looked at again for what was created; its watch wakes us before.
	createdRecheck = 5 * time.Second
	// preflightRecheck is when preflight checks that failed are made again (MS-12).
	preflightRecheck = 15 * time.Second
)

// Reasons of waits that end up in the condition ScalingUp.
const (
	waitForTemplate   = "WaitingForTemplate"
	waitForPreflight  = "PreflightCheckFailed"
	waitForPermission = "MachineCreateDisabled"
	waitForName       = "InvalidNamingTemplate"
	waitForCache      = "WaitingForCache"
)

// Decide says what to do about a MachineSet.
//
//	does not belong to its Cluster            join it                                        MS-02
//	of a managed topology                     add its finalizer                              MS-01
//	graph of owners not whole                 adopt what is ours, or wait                    MS-03
//	templates of a standalone set             own them for the Cluster                       OR-01
//	Machine is not what the template says     propagate in place, clones first               MS-08
//	clones that no Machine has                delete                                         MS-04
//	UpToDate (standalone), OwnerRemediated    set                                            MA-24, MS-18
//	unhealthy Machines                        delete, within the budget                      MS-18
//	too few, too many                         create, delete                                 MS-04, MS-10
func Decide(s Snapshot) loop.Plan {
	if deleting(s) {
		return decideDeletion(s)
	}
	var p loop.Plan
	switch {
	case s.Cluster != nil && !joined(s):
		p.Do(Join{Cluster: s.Cluster.Name})
	case s.Settings.Topology && ofTopology(s.Set) && !protected(s):
		p.Do(Protect{})
	}
	verdict := ownership.Judge(facts(s))
	for _, name := range verdict.Adopt {
		p.Do(Adopt{Machine: name})
	}
	if !verdict.Whole() {
		p.WaitFor(verdict.Reason, "%s", verdict.Message)
		p.RecheckIn(verdict.Recheck)
		if verdict.Reason == ownership.ReasonWorkloadUnknown && s.Unanswered {
			p.RecheckIn(unseenRecheck)
		}
		return p
	}
	if asksClones(s) {
		p.Ask = []loop.Question{AskClones{}}
		return p
	}
	ownTemplates(s, &p)
	p.Do(propagation(s)...)
	judgeMachines(s, &p)
	remediate(s, &p)
	scale(s, &p)
	return p
}

// decideDeletion deletes the Machines, then the templates of a managed topology; the finalizer goes last (MS-25).
func decideDeletion(s Snapshot) loop.Plan {
	var p loop.Plan
	var all, left []string
	want := newMachine(s, "")
	for _, m := range s.Machines {
		all = append(all, m.Name)
		switch {
		case !m.Deleted:
			left = append(left, m.Name)
		case !m.Stale && needsSync(s, m, want):
			p.Do(SyncTimeouts{Machine: m.Name})
		}
	}
	all = append(all, s.Created...)
	deleteMachines(&p, left, "the MachineSet is deleted")
	if len(all) > 0 {
		p.WaitFor(clusterv1.MachineSetDeletingReason, "Waiting for %d Machines to be deleted", len(all))
	}
	if len(s.Created) > 0 {
		p.RecheckIn(createdRecheck)
	}
	if p.Idle() {
		releaseTemplates(s, &p)
	}
	return p
}

// joined reports whether label and owner are as MS-02 says.
func joined(s Snapshot) bool {
	if s.Set.Labels[clusterv1.ClusterNameLabel] != s.Cluster.Name {
		return false
	}
	return !standalone(s.Set) || ownership.Owns(s.Cluster, s.Set)
}

// standalone MachineSets belong to nobody but the Cluster (MS-02). One with the label of a MachineDeployment was made
// by it, or restored before it.
func standalone(set *clusterv1.MachineSet) bool {
	_, labelled := set.Labels[clusterv1.MachineDeploymentNameLabel]
	return !labelled && metav1.GetControllerOfNoCopy(set) == nil
}

func facts(s Snapshot) ownership.Facts {
	f := ownership.Facts{
		Kind: setKind, Name: s.Set.Name, Cluster: s.Set.Spec.ClusterName, ClusterExists: s.Cluster != nil,
		Owned: s.Deployment != nil, Observed: s.Set.Status.ObservedGeneration > 0, Hidden: s.Hidden,
		Workload: s.Workload,
	}
	if name, ok := s.Set.Labels[clusterv1.MachineDeploymentNameLabel]; ok {
		f.Parent = deploymentKind + " " + name
	}
	for _, m := range s.Others {
		f.Children = append(f.Children, ownership.Child{
			Kind: "Machine", Name: m.Name, Selected: selects(s.Set, m), Controller: controllerOf(s.Set, m),
			Deleting: !m.DeletionTimestamp.IsZero(),
		})
	}
	return f
}

// ownTemplates makes the Cluster an owner of the templates of a standalone set, so that they go with it (OR-01). Those
// of others are the MachineDeployment's to care for.
func ownTemplates(s Snapshot, p *loop.Plan) {
	if !standalone(s.Set) {
		return
	}
	for _, t := range []Template{s.Bootstrap, s.Infra} {
		if t.Object.Unstructured != nil && !ownership.Owns(s.Cluster, t.Object) {
			p.Do(OwnTemplate{Kind: t.Ref.Kind, Name: t.Ref.Name})
		}
	}
}

// hindrances are what hinders the creation of Machines, in the order in which to solve it.
func hindrances(s Snapshot) []loop.Wait {
	var out []loop.Wait
	for _, t := range []Template{s.Bootstrap, s.Infra} {
		switch {
		case !t.Ref.IsDefined():
		case t.Problem != "":
			out = append(out, loop.Wait{Reason: waitForTemplate, Message: t.Problem})
		case t.Object.Unstructured == nil:
			out = append(out, loop.Wait{Reason: waitForTemplate, Message: t.Ref.Kind + " " + t.Ref.Name + " does not exist"})
		}
	}
	if s.Set.Annotations[clusterv1.DisableMachineCreateAnnotation] == "true" { // MS-11
		out = append(out, loop.Wait{Reason: waitForPermission,
			Message: "annotation " + clusterv1.DisableMachineCreateAnnotation + " stops the creation of Machines"})
	}
	for _, message := range preflight(s) {
		out = append(out, loop.Wait{Reason: waitForPreflight, Message: message})
	}
	return out
}

// selects reports whether the set's selector matches the Machine.
func selects(set *clusterv1.MachineSet, m *clusterv1.Machine) bool {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	return err == nil && selector.Matches(labelsOf(m))
}

// deleteMachines adds the deletion of Machines, several at once.
func deleteMachines(p *loop.Plan, names []string, why string) {
	for part := range slices.Chunk(names, batch) {
		p.Do(Delete{Names: strings.Join(part, " "), Why: why})
	}
}

// batch is how many Machines one action makes or deletes at most.
const batch = 50

// of returns the condition of a Machine, or nil.
func of(m *clusterv1.Machine, conditionType string) *metav1.Condition {
	return condition.Set(m.Status.Conditions).Get(conditionType)
}
