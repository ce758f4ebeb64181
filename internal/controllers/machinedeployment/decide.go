package machinedeployment

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// Reasons of waits that a condition repeats.
const (
	invalidStrategy = "InvalidStrategy"
	rolloutHeld     = "RolloutHeld"
	waitForReplicas = clusterv1.MachineDeploymentAvailableWaitingForReplicasSetReason
)

// replicasNotSet is said of a deployment that nobody gave a number of replicas.
const replicasNotSet = "Waiting for spec.replicas to be set; until then no Machine is created or deleted"

// Decide says what to do about a MachineDeployment, in this order:
//
//	not of its Cluster            join it                                                      DP-01
//	restored in part              adopt MachineSets; until all is there, nothing else          restore.go
//	spec.replicas not set         nothing: it is not known how many Machines there shall be
//	templates                     own them by the Cluster                                      DP-19
//	no MachineSet of the template create one, with the replicas that fit                       DP-02, DP-03
//	every MachineSet              take it over from the reference implementation; replicas as
//	                              planned, everything that is propagated in place
//	rollout complete              delete empty MachineSets                                     DP-20
//	new MachineSet                record its revision                                          DP-04
func Decide(s Snapshot) loop.Plan {
	if !s.Deployment.DeletionTimestamp.IsZero() {
		return decideDeletion(s)
	}
	var p loop.Plan
	if s.Cluster != nil && !ownership.Joined(s.Deployment, s.Cluster) {
		p.Do(Join{Cluster: s.Cluster.Name})
		return p
	}
	if !decideOwnership(s, &p) {
		return p
	}
	if s.Deployment.Spec.Replicas == nil {
		p.WaitFor(waitForReplicas, replicasNotSet)
		return p
	}
	if s.Behind {
		p.WaitFor("CacheBehind", "the last change of a MachineSet has not come back yet")
		p.RecheckIn(forgetAfter)
		return p
	}
	decideTemplates(s, &p)
	decideRollout(s, &p)
	return p
}

// decideTemplates makes the Cluster own the templates, and says which are missing (DP-19).
func decideTemplates(s Snapshot, p *loop.Plan) {
	for i, t := range s.Templates {
		if t.Object.Unstructured != nil && !ownership.Owns(s.Cluster, t.Object.Unstructured) {
			p.Do(OwnTemplate{Kind: t.Ref.Kind, Name: t.Ref.Name, Place: i})
		}
	}
	if problem := missing(s); problem != "" {
		p.WaitFor("TemplateNotFound", "%s; no Machine can be made without", problem)
	}
}

// missing says which template stands in the way of new Machines, empty: none.
func missing(s Snapshot) string {
	for _, t := range s.Templates {
		switch {
		case t.Problem != "":
			return t.Problem
		case t.Object.Unstructured == nil:
			return t.Ref.Kind + " " + t.Ref.Name + " does not exist"
		}
	}
	return ""
}

// decideRollout brings the MachineSets to what package rollout plans.
func decideRollout(s Snapshot, p *loop.Plan) {
	c, err := courseOf(s)
	if err != nil {
		p.WaitFor(invalidStrategy, "The rollout strategy cannot be followed: %s", err)
		return
	}
	if c.held != "" {
		p.WaitFor(rolloutHeld, "%s", c.held)
	}
	scaled := map[string]rollout.Change{}
	for _, change := range rollout.Plan(c.state) {
		scaled[change.Set] = change
	}
	if c.creates() {
		n := scaled[c.state.New.Name].To
		p.Do(CreateSet{Name: c.state.New.Name, Replicas: n, Revision: c.state.New.Revision})
	}
	for i := range s.Sets {
		decideSet(s, planned{course: c, set: &s.Sets[i], change: scaled[s.Sets[i].Name]}, p)
	}
	if rollout.Complete(c.state) && !c.state.Held {
		for _, set := range c.empty(s) {
			p.Do(DeleteSet{Name: set, Why: "it is empty and the rollout is complete"})
		}
	}
	if c.index >= 0 && revisionOf(s.Deployment) != c.state.New.Revision {
		p.Do(RecordRevision{Revision: c.state.New.Revision})
	}
	if after := s.Deployment.Spec.Rollout.After; !after.IsZero() { // DP-10
		p.RecheckIn(after.Sub(s.Now))
	}
	p.RecheckIn(youngest(s))
}

// planned is one existing MachineSet and its place in the plan.
type planned struct {
	course
	set    *clusterv1.MachineSet
	change rollout.Change
}

// decideSet applies to a MachineSet what it should be, where it is not.
func decideSet(s Snapshot, pl planned, p *loop.Plan) {
	if !pl.set.DeletionTimestamp.IsZero() {
		return
	}
	if former().Moves(pl.set) {
		p.Do(TakeOver{Set: pl.set.Name})
	}
	a := SyncSet{Name: pl.set.Name, Replicas: replicasOf(pl.set), Revision: revisionOf(pl.set), From: replicasOf(pl.set)}
	if pl.change.Set != "" {
		a.Replicas, a.Why = pl.change.To, pl.change.Why
	}
	if pl.index >= 0 && s.Sets[pl.index].Name == pl.set.Name {
		a.Current, a.Revision = true, pl.state.New.Revision
	}
	same, err := kube.Covers(pl.set, kube.Prefix+Name, foreign(pl.set, wanted(s, a.part())).Object)
	if err != nil || !same {
		p.Do(a)
	}
}

// course is where the rollout stands: the state to plan from, and which MachineSet is the current one.
type course struct {
	state rollout.State
	// index of the current MachineSet in the snapshot; -1: there is none (yet).
	index int
	// held says why the rollout stands still, empty: it does not, or because the user paused it.
	held string
}

// creates reports whether a MachineSet has to be created.
func (c course) creates() bool { return c.index < 0 && c.state.New != nil }

// empty names the MachineSets that have nothing left and have seen it.
func (c course) empty(s Snapshot) []string {
	var out []string
	for i, set := range s.Sets {
		seen := set.Status.ObservedGeneration >= set.Generation && deref(set.Status.Replicas) == 0
		if i != c.index && seen && replicasOf(&set) == 0 && len(s.Machines[set.Name]) == 0 && set.DeletionTimestamp.IsZero() {
			out = append(out, set.Name)
		}
	}
	return out
}

// courseOf reads the state of the rollout out of the snapshot.
func courseOf(s Snapshot) (course, error) {
	replicas := deref(s.Deployment.Spec.Replicas)
	limits, err := rollout.Resolve(s.Deployment.Spec.Rollout.Strategy, replicas)
	if err != nil {
		return course{}, err
	}
	c := course{index: current(s), state: rollout.State{Replicas: replicas, Limits: limits, Held: isTrue(s.Deployment.Spec.Paused)}}
	if held := standstill(s); held != "" {
		c.held, c.state.Held = held, true
	}
	var newest int64
	for i := range s.Sets {
		if i != c.index {
			set := view(s, &s.Sets[i])
			c.state.Old = append(c.state.Old, set)
			newest = max(newest, set.Revision)
		}
	}
	switch {
	case c.index >= 0:
		set := view(s, &s.Sets[c.index])
		set.Revision = max(set.Revision, newest+1)
		c.state.New = &set
	case !c.state.Held:
		revision := max(newest, revisionOf(s.Deployment)) + 1
		c.state.New = &rollout.Set{Name: nameOf(s, revision), Revision: revision, Created: s.Now, Recorded: -1}
	}
	return c, nil
}

// standstill says why nothing is rolled out although nobody paused it, empty: no reason.
func standstill(s Snapshot) string {
	if problem := missing(s); problem != "" {
		return problem
	}
	return unseen(s)
}

// current returns the place of the MachineSet that the template asks for, -1: there is none (DP-02, DP-10). Of several
// the one with the most replicas is it, then the newest.
func current(s Snapshot) int {
	best := -1
	for i := range s.Sets {
		set := &s.Sets[i]
		if !set.DeletionTimestamp.IsZero() || len(rollout.Differences(set.Spec.Template, s.Deployment.Spec.Template)) > 0 ||
			rollout.Expired(s.Deployment.Spec.Rollout.After.Time, set.CreationTimestamp.Time, s.Now) {
			continue
		}
		if best < 0 || better(s, i, best) {
			best = i
		}
	}
	return best
}

func better(s Snapshot, a, b int) bool {
	if ra, rb := replicasOf(&s.Sets[a]), replicasOf(&s.Sets[b]); ra != rb {
		return ra > rb
	}
	return rollout.Older(view(s, &s.Sets[b]), view(s, &s.Sets[a])) < 0
}

// view is a MachineSet as package rollout sees it.
func view(s Snapshot, set *clusterv1.MachineSet) rollout.Set {
	v := rollout.Set{
		Name: set.Name, Revision: revisionOf(set), Created: set.CreationTimestamp.Time, Desired: replicasOf(set),
		Recorded: -1, Leaving: !set.DeletionTimestamp.IsZero(),
	}
	if n, err := strconv.ParseInt(set.Annotations[clusterv1.DesiredReplicasAnnotation], 10, 32); err == nil {
		v.Recorded = int32(n)
	}
	goesBefore := false // an available Machine that the MachineSet takes first (MS-10)
	for _, m := range s.Machines[set.Name] {
		conditions := condition.Set(m.Status.Conditions)
		v.Actual++
		switch {
		case !m.DeletionTimestamp.IsZero():
			v.Deleting++
		case conditions.IsTrue(clusterv1.MachineAvailableCondition):
			v.Available++
			goesBefore = goesBefore || preferred(m)
		case unhealthy(m):
			v.Free++
		}
	}
	if goesBefore {
		v.Free = 0
	}
	return v
}

// preferred reports whether a scale down takes the Machine before unhealthy ones (MS-10).
func preferred(m clusterv1.Machine) bool {
	_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
	_, updating := m.Annotations[clusterv1.UpdateInProgressAnnotation]
	return marked || updating
}

// unhealthy reports whether a scale down takes the Machine before healthy ones (MS-10).
func unhealthy(m clusterv1.Machine) bool {
	set := condition.Set(m.Status.Conditions)
	return !m.Status.NodeRef.IsDefined() || set.IsFalse(clusterv1.MachineNodeHealthyCondition) ||
		set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition)
}

// newFor is how long a Machine without an UpToDate condition is not reported as one that lacks it (DP-12).
const newFor = 10 * time.Second

// youngest is when a Machine that nobody has judged yet stops being new; zero: there is none.
func youngest(s Snapshot) time.Duration {
	var left time.Duration
	for _, m := range machinesOf(s) {
		if condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition) == nil {
			left = max(left, newFor-s.Now.Sub(m.CreationTimestamp.Time))
		}
	}
	return left
}

// machinesOf returns the Machines of all MachineSets.
func machinesOf(s Snapshot) []clusterv1.Machine {
	var out []clusterv1.Machine
	for _, set := range s.Sets {
		out = append(out, s.Machines[set.Name]...)
	}
	return out
}

// revisionOf returns the revision that an object is annotated with (DP-04), 0: none.
func revisionOf(o metav1.Object) int64 {
	n, err := strconv.ParseInt(o.GetAnnotations()[clusterv1.RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func replicasOf(set *clusterv1.MachineSet) int32 { return deref(set.Spec.Replicas) }

func deref(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

func isTrue(b *bool) bool { return b != nil && *b }
