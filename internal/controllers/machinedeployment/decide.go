package machinedeployment

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// Reasons of waits that are repeated in a condition.
const (
	invalidStrategy = "InvalidStrategy"
	rolloutHeld     = "RolloutHeld"
	waitForReplicas = clusterv1.MachineDeploymentAvailableWaitingForReplicasSetReason
)

// nodesRecheck is the interval for reading the Nodes' health again while a rollout waits for it: the status of a paused
// MachineSet, and of one with many problems, does not change with every Machine.
const nodesRecheck = 15 * time.Second

// replicasNotSet is the message for a deployment whose number of replicas was never set.
const replicasNotSet = "Waiting for spec.replicas to be set; until then no Machine is created or deleted"

// decide computes the plan for a MachineDeployment. Package reconciler calls it in each reconciliation, again after the
// calls of extensions that it requests. It is pure: it neither reads nor writes. The order of the plan:
//
//	not joined to its Cluster      join it
//	restored in part               adopt MachineSets; nothing else until all objects are back        restore.go
//	spec.replicas not set          nothing: the desired number of Machines is unknown
//	templates                      make the Cluster their owner
//	no MachineSet for the template create one, with as many replicas as allowed
//	every MachineSet               transfer field ownership from Cluster API's own controller; apply
//	                               the planned replicas and all fields that are propagated in place
//	rollout complete               delete empty MachineSets
//	new MachineSet                 record its revision
func decide(s snapshot) reconciler.Plan {
	if !s.Deployment.DeletionTimestamp.IsZero() {
		return decideDeletion(s)
	}
	var p reconciler.Plan
	if s.Cluster != nil && !ownership.IsInCluster(s.Deployment, s.Cluster) {
		p.Do(joinCluster{Cluster: s.Cluster.Name})
		return p
	}
	p.RecheckIn(clusterAwaited(s))
	if !decideOwnership(s, &p) {
		return p
	}
	if s.Deployment.Spec.Replicas == nil {
		p.WaitFor(waitForReplicas, replicasNotSet).For(kind, s.Deployment.Name).ToChange("spec.replicas")
		return p
	}
	if s.Stale {
		p.WaitFor("StaleCache", "Waiting for the cache to catch up with the last MachineSet update").ForAll("MachineSet", setNames(s)).
			ToChange("metadata.resourceVersion")
		p.RecheckIn(forgetAfter)
		return p
	}
	decideTemplates(s, &p)
	decideRollout(s, &p)
	return p
}

// decideTemplates makes the Cluster the owner of the templates and waits for missing templates.
func decideTemplates(s snapshot, p *reconciler.Plan) {
	p.Do(s.Templates.OwnedBy(s.Cluster)...)
	for _, template := range s.Templates.Unusable() {
		template.Await(p, "TemplateNotFound", "; no Machine can be created without it")
		return
	}
}

// templatesFollow is how long templates may be missing after the creation of a deployment before users are
// notified, because a manifest may contain them after the deployment.
const templatesFollow = 10 * time.Second

// templateProblem describes the template that blocks the creation of Machines, or returns an empty string.
// scalingProblem (blockers.go) calls it.
func templateProblem(s snapshot) string {
	unusable := s.Templates.Unusable()
	switch {
	case len(unusable) == 0:
		return ""
	case templatesAwaited(s) > 0:
		return fmt.Sprintf("Waiting for %s %s to be created", unusable[0].Ref.Kind, unusable[0].Ref.Name)
	}
	return unusable[0].Blocker()
}

// templatesAwaited returns how much longer a missing template is tolerated.
func templatesAwaited(s snapshot) time.Duration {
	unusable := s.Templates.Unusable()
	if len(unusable) == 0 || unusable[0].Object.Problem != "" || s.Policy.DeniedReplicas(ptr.Deref(s.Deployment.Spec.Replicas, 0)) != "" {
		return 0
	}
	return max(0, s.Deployment.CreationTimestamp.Add(templatesFollow).Sub(s.Now))
}

// decideRollout scales the MachineSets according to the plan of package rollout.
func decideRollout(s snapshot, p *reconciler.Plan) {
	r, err := rolloutOf(s)
	if err != nil {
		p.WaitFor(invalidStrategy, "The rollout strategy cannot be followed: %s", err).For(kind, s.Deployment.Name).UntilUserActs()
		return
	}
	if r.needsCheck() {
		p.Reads = append(p.Reads, askInPlace{})
		return
	}
	if r.unknown != "" {
		p.WaitFor(inPlaceUnknown, "%s", r.unknown).For(kind, s.Deployment.Name).ForTime()
		p.RecheckIn(r.recheck)
	}
	if r.held != "" {
		wait := p.WaitFor(rolloutHeld, "%s", r.held)
		if waiting, ambiguous := machinesWithUnknownNodes(s); scalingProblem(s) == "" {
			wait.ForAll("Machine", append(waiting, ambiguous...)).ToChange("condition " + clusterv1.MachineNodeHealthyCondition)
			p.RecheckIn(nodesRecheck)
		} else if left := templatesAwaited(s); left > 0 {
			wait.For(kind, s.Deployment.Name).ForTime()
			p.RecheckIn(left)
		} else {
			wait.For(kind, s.Deployment.Name).UntilUserActs()
		}
	}
	scaled := map[string]rollout.Change{}
	if !r.denied {
		for _, change := range rollout.Plan(r.state) {
			scaled[change.Set] = change
		}
	}
	if r.creates() {
		n := scaled[r.state.New.Name].To
		p.Do(createSet{Name: r.state.New.Name, Replicas: n, Revision: r.state.New.Revision, Note: replacedNote(s), moves: r.movesOf(s, nil)})
	}
	for i := range s.Sets {
		decideSet(s, plannedSet{rolloutState: r, set: &s.Sets[i], change: scaled[s.Sets[i].Name]}, p)
	}
	if rollout.Complete(r.state) && !r.state.Paused {
		for _, set := range r.empty(s) {
			p.Do(deleteSet{Name: set, Why: "it is empty and the rollout is complete"})
		}
	}
	if r.index >= 0 && revisionOf(s.Deployment) != r.state.New.Revision {
		p.Do(recordRevision{Revision: r.state.New.Revision})
	}
	if after := s.Deployment.Spec.Rollout.After; !after.IsZero() {
		p.RecheckIn(after.Sub(s.Now))
	}
	p.RecheckIn(upToDateRecheck(s))
}

// plannedSet is an existing MachineSet with its part of the rollout plan.
type plannedSet struct {
	rolloutState
	set    *clusterv1.MachineSet
	change rollout.Change
}

// decideSet applies the desired MachineSet if it differs from the current one.
func decideSet(s snapshot, pl plannedSet, p *reconciler.Plan) {
	if !pl.set.DeletionTimestamp.IsZero() {
		return
	}
	if fieldTransfer().HasChanges(pl.set) {
		p.Do(transferFields{Set: pl.set.Name})
	}
	a := syncSet{Name: pl.set.Name, Replicas: replicasOf(pl.set), Revision: revisionOf(pl.set), From: replicasOf(pl.set), moves: pl.movesOf(s, pl.set)}
	a.Begins = a.to != "" && inplace.TransferTarget(pl.set) != a.to
	if pl.change.Set != "" {
		a.Replicas, a.Why = pl.change.To, pl.change.Why
	}
	if pl.index >= 0 && s.Sets[pl.index].Name == pl.set.Name {
		a.Current, a.Revision = true, pl.state.New.Revision
	}
	same, err := kube.IsApplied(pl.set, kube.ManagerPrefix+Name, withForeign(pl.set, desiredObject(s, a.share())).Object)
	if err != nil || !same {
		p.Do(a)
	}
}

// rolloutState is the state of the rollout: the input of its plan, and the current MachineSet. rolloutOf fills it.
type rolloutState struct {
	state rollout.DeploymentState
	// index of the current MachineSet in the snapshot, or -1 if there is none yet.
	index int
	// held explains why the rollout is blocked. It is empty if the rollout proceeds or the user paused it.
	held string
	// denied is set if the operator's policy does not allow the number of replicas. No MachineSet is then scaled.
	denied bool
	inPlace
}

// creates reports whether a MachineSet has to be created.
func (r rolloutState) creates() bool { return r.index < 0 && r.state.New != nil }

// empty returns the MachineSets without Machines whose status confirms that.
func (r rolloutState) empty(s snapshot) []string {
	var out []string
	for i, set := range s.Sets {
		seen := set.Status.ObservedGeneration >= set.Generation && ptr.Deref(set.Status.Replicas, 0) == 0
		if i != r.index && seen && replicasOf(&set) == 0 && len(s.Machines[set.Name]) == 0 && set.DeletionTimestamp.IsZero() {
			out = append(out, set.Name)
		}
	}
	return out
}

// rolloutOf computes the state of the rollout from the snapshot.
func rolloutOf(s snapshot) (rolloutState, error) {
	replicas := ptr.Deref(s.Deployment.Spec.Replicas, 0)
	limits, err := rollout.Resolve(s.Deployment.Spec.Rollout.Strategy, replicas)
	if err != nil {
		return rolloutState{}, err
	}
	r := rolloutState{index: currentSet(s), state: rollout.DeploymentState{Replicas: replicas, Limits: limits, Paused: ptr.Deref(s.Deployment.Spec.Paused, false)}}
	r.denied = s.Policy.DeniedReplicas(replicas) != ""
	if held := blockedReason(s); held != "" {
		r.held, r.state.Paused = held, true
	}
	r.inPlace = inPlaceOf(s, r)
	r.state.Paused = r.state.Paused || r.unknown != ""
	var newest int64
	for i := range s.Sets {
		if i != r.index {
			set := setView(s, &s.Sets[i])
			set.InPlace = r.canUpdate(s, &s.Sets[i])
			r.state.Old = append(r.state.Old, set)
			newest = max(newest, set.Revision)
		}
	}
	switch {
	case r.index >= 0:
		set := setView(s, &s.Sets[r.index])
		set.Revision = max(set.Revision, newest+1)
		r.state.New = &set
	case !r.state.Paused:
		revision := nextRevision(s)
		r.state.New = &rollout.MachineSet{Name: nameOf(s, revision), Revision: revision, Created: s.Now, Recorded: -1}
	}
	r.moving = rollout.Moving(r.state)
	return r, nil
}

// nextRevision returns the revision of the next MachineSet.
func nextRevision(s snapshot) int64 {
	newest := revisionOf(s.Deployment)
	for i := range s.Sets {
		newest = max(newest, revisionOf(&s.Sets[i]))
	}
	return newest + 1
}

// blockedReason returns why the rollout is blocked other than by a pause, or an empty string.
func blockedReason(s snapshot) string {
	return cmp.Or(scalingProblem(s), unknownNodes(s))
}

// currentSet returns the index of the MachineSet that matches the template, or -1 if there is none. Of several it
// returns the one with the most replicas, then the newest. The rollout, the in-place updates and the status all use it,
// so that they agree.
func currentSet(s snapshot) int {
	best := -1
	for i := range s.Sets {
		set := &s.Sets[i]
		if !set.DeletionTimestamp.IsZero() || len(rollout.Differences(set.Spec.Template, s.Deployment.Spec.Template)) > 0 ||
			rollout.Expired(s.Deployment.Spec.Rollout.After.Time, set.CreationTimestamp.Time, s.Now) {
			continue
		}
		if best < 0 || isBetter(s, i, best) {
			best = i
		}
	}
	return best
}

func isBetter(s snapshot, a, b int) bool {
	if ra, rb := replicasOf(&s.Sets[a]), replicasOf(&s.Sets[b]); ra != rb {
		return ra > rb
	}
	return rollout.Older(setView(s, &s.Sets[b]), setView(s, &s.Sets[a])) < 0
}

// setView converts a MachineSet to the input of package rollout. The rollout is planned from it, and after a restore it
// shows whether the MachineSet has too few replicas.
func setView(s snapshot, set *clusterv1.MachineSet) rollout.MachineSet {
	v := rollout.MachineSet{
		Name: set.Name, Revision: revisionOf(set), Created: set.CreationTimestamp.Time, Desired: replicasOf(set),
		Recorded: -1, Leaving: !set.DeletionTimestamp.IsZero(),
	}
	if n, err := strconv.ParseInt(set.Annotations[clusterv1.DesiredReplicasAnnotation], 10, 32); err == nil {
		v.Recorded = int32(n)
	}
	preferred := false // an available Machine that the MachineSet deletes before unavailable ones
	for i := range s.Machines[set.Name] {
		m := &s.Machines[set.Name][i]
		priority := machines.PriorityOf(machines.OwnedMachine{Machine: m, Deleted: !m.DeletionTimestamp.IsZero()})
		v.Actual++
		switch {
		case priority == machines.Deleting:
			v.Deleting++
		case inplace.AwaitsStart(set, m):
			v.Free, v.NotBegun = v.Free+1, v.NotBegun+1
		case inplace.IsMarked(m) && inplace.HasFailed(m):
			v.Free++
		case inplace.IsMarked(m): // regardless of its conditions, which may be outdated
			v.Updating++
		case condition.Set(m.Status.Conditions).IsTrue(clusterv1.MachineAvailableCondition):
			v.Available++
			preferred = preferred || priority == machines.Marked
		case machines.IsUnhealthy(m):
			v.Free++
		}
	}
	if preferred {
		v.Free, v.NotBegun = 0, 0
	}
	v.Moved = int32(len(newlyCounted(s, set)))
	return v
}

// upToDateRecheck returns the time until the next Machine without an UpToDate condition counts as new no longer, or zero if
// there is none.
func upToDateRecheck(s snapshot) time.Duration {
	var next time.Duration
	for _, m := range machinesOf(s) {
		if condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition) != nil {
			continue
		}
		if left := machines.NewMachineGrace - s.Now.Sub(m.CreationTimestamp.Time); left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	return next
}

// machinesOf returns the Machines of all MachineSets.
func machinesOf(s snapshot) machines.List {
	var out machines.List
	for _, set := range s.Sets {
		for i := range s.Machines[set.Name] {
			out = append(out, &s.Machines[set.Name][i])
		}
	}
	return out
}

// revisionOf returns the revision in the annotation of an object, or 0.
func revisionOf(o metav1.Object) int64 {
	n, err := strconv.ParseInt(o.GetAnnotations()[clusterv1.RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func replicasOf(set *clusterv1.MachineSet) int32 { return ptr.Deref(set.Spec.Replicas, 0) }
