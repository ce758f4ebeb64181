package rootcause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// Limits of a search.
const (
	maxDepth    = 16
	maxNodes    = 2000
	maxChildren = 500
	// maxResolved is the number of names in the messages of an object that are looked up, because each may be a request.
	maxResolved = 32
	// maxVisits is the number of visits of a search for the problems of many objects.
	maxVisits = 100 * maxNodes
)

// Explain returns the root cause chain of an object, or false if everything is as it should be. `slipway explain`,
// `slipway describe cluster` and package ui call it. An object that cannot be read has no chain. An object without a
// problem has the chain of the objects that it owns or refers to.
func Explain(g Graph, of Ref, now time.Time) (Chain, bool) {
	s := newSearch(g, now)
	return s.explain(of)
}

// visit is a node of the search: an object, and the direction from which it was reached. Of an object that was reached
// upwards, from one of its dependents, only its own state matters, because its other dependents have nothing to do with
// the one that waits.
type visit struct {
	ref    Ref
	upward bool
}

// result is the chain of a node; nil if it has no problem.
type result struct{ chain *Chain }

// search is the state of [Explain], [Problems] or [Upcoming].
type search struct {
	graph Graph
	now   time.Time
	// of is the object that is being explained.
	of Ref
	// done has the results that are the same on every path, and local the results that depend on the object that is being
	// explained, because the search ended at an object of the path or at a limit.
	done, local map[visit]result
	// path has the objects of the current path with their depth.
	path map[Ref]int
	// cut is the smallest depth at which the search ended below the current node.
	cut int
	// left is the number of visits that are left for the explained object, and total for the whole search.
	left, total int
}

func newSearch(g Graph, now time.Time) *search {
	return &search{graph: g, now: now, done: map[visit]result{}, path: map[Ref]int{}, total: maxVisits}
}

func (s *search) explain(of Ref) (Chain, bool) {
	s.graph.BeginSearch(of)
	s.of, s.left, s.cut, s.local = of, maxNodes, maxDepth, map[visit]result{}
	c := s.visit(visit{ref: of}, 0)
	if c == nil {
		return Chain{}, false
	}
	out := *c
	out.Time = s.now
	s.protectLastMachine(&out)
	return out, true
}

// visit returns the chain of a node, or nil if there is none or the limits are reached.
func (s *search) visit(v visit, depth int) *Chain {
	if at, isOnPath := s.path[v.ref]; isOnPath {
		s.cut = min(s.cut, at)
		return nil
	}
	if known, seen := s.done[v]; seen {
		return known.chain
	}
	if known, seen := s.local[v]; seen {
		s.cut = 0
		return known.chain
	}
	if limit := s.limitAt(depth); limit != "" {
		s.graph.ReachLimit(s.of, limit)
		s.cut = -1
		return nil
	}
	s.left--
	s.total--
	u, found := s.graph.Get(v.ref)
	if !found {
		s.done[v] = result{}
		return nil
	}
	before := s.cut
	s.path[v.ref], s.cut = depth, maxDepth
	c := s.chain(newObjectAt(v.ref, u, s.now), v.upward, depth)
	delete(s.path, v.ref)
	if s.cut >= depth {
		s.done[v] = result{c}
		s.cut = before
		return c
	}
	s.local[v] = result{c}
	s.cut = min(s.cut, before)
	return c
}

// limitAt returns the limit that ends the search at a depth, or an empty string. The texts name no objects, so that a graph
// records few of them.
func (s *search) limitAt(depth int) string {
	switch {
	case depth >= maxDepth:
		return fmt.Sprintf("Causes that are more than %d objects away were not considered", maxDepth)
	case s.left <= 0:
		return fmt.Sprintf("Only %d objects were considered for one object", maxNodes)
	case s.total <= 0:
		return fmt.Sprintf("Only %d objects were considered in total", maxVisits)
	}
	return ""
}

// chain computes the chain of an object.
func (s *search) chain(o object, upward bool, depth int) *Chain {
	problems, plans := s.problems(o, depth)
	if upward {
		problems = slices.DeleteFunc(problems, isOfDependents)
	}
	if len(problems) == 0 || problems[0].weight == weightWarning {
		return s.chainBelow(o, problems, upward, depth)
	}
	top := problems[0]
	if top.isFinal() {
		return s.end(o, top, plans)
	}
	below, through := s.follow(o, problems, upward, depth)
	if missing := s.missingTemplate(o, problems, plans); missing != nil && !upward && (below == nil || compareChains(missing, below) < 0) {
		return missing
	}
	if below == nil {
		return s.remediate(o, s.end(o, top, plans))
	}
	c := &Chain{Links: append([]Link{through.Link}, below.Links...), Remedy: below.Remedy, Plans: below.Plans || plans, weight: below.weight, isLate: below.isLate}
	if below.IsWarning() { // about the object below; this one is not as it should be
		c.weight = top.weight
	}
	return s.remediate(o, c)
}

// chainBelow returns the chain of an object that is as it should be: the best one of the objects that it owns or refers to,
// else its own warning.
func (s *search) chainBelow(o object, warnings []problem, upward bool, depth int) *Chain {
	var below *Chain
	if !upward {
		below = s.best(s.candidates(o, nil, false), depth, nil)
	}
	if len(warnings) == 0 || below != nil && !below.IsWarning() {
		return below
	}
	return s.end(o, warnings[0], false)
}

// isOfDependents reports whether a problem describes dependents of its object.
func isOfDependents(p problem) bool {
	workers := strings.Contains(p.Type, "Worker") || strings.Contains(p.Type, "Machines")
	return workers || p.weight >= weightSummary
}

// end returns the chain that ends with a problem.
func (s *search) end(o object, p problem, plans bool) *Chain {
	if p.weight == weightSummary { // nothing explains the summary, so it reports the state of the object itself
		p.weight = weightCondition
	}
	remedy, isLate := remedyOf(o, p, s.now)
	if !remedy.Automatic {
		if simulating, found := s.simulatedFault(o, p); found {
			remedy.Text += fmt.Sprintf(". Or remove annotation %s from %s: it simulates the fault", infrav1.ControlPlaneFaultsAnnotation, simulating)
		}
	}
	if template, found := s.faultTemplate(o, p.Message); found {
		remedy.Text += fmt.Sprintf(". New Machines get it from spec.template.metadata.annotations of %s: remove it there first", template)
	}
	return &Chain{Links: []Link{p.Link}, Remedy: remedy, Plans: plans, weight: p.weight, isLate: isLate}
}

// problems returns the problems of an object from its fields and from plans. Plans are requested for the explained object
// and for objects with a problem only.
func (s *search) problems(o object, depth int) ([]problem, bool) {
	out := mostImportant(o.problems(s.now), s.now)
	if len(out) > 0 && (out[0].weight == weightAbandoned || out[0].Type+out[0].Reason == "") && s.isClusterPaused(o) {
		return []problem{o.pausedByCluster()}, false
	}
	if depth > 0 && len(out) == 0 || len(out) > 0 && out[0].isFinal() {
		return out, false
	}
	plans := s.graph.Plans(o.ref)
	for _, plan := range plans {
		out = append(out, o.planProblems(plan, s.now)...)
	}
	return mostImportant(out, s.now), len(plans) > 0
}

// isClusterPaused reports whether the Cluster of an object is paused.
func (s *search) isClusterPaused(o object) bool {
	name := o.cluster()
	if name == "" {
		return false
	}
	u, found := s.graph.Get(clusterRef(o.ref.Namespace, name))
	return found && isPausedCluster(u)
}

// planProblems returns the waits and errors of a plan.
func (o object) planProblems(plan Plan, now time.Time) (out []problem) {
	for _, text := range plan.Errors {
		out = append(out, problem{weight: weightError, Link: Link{Object: o.ref, Reason: reasonPlanFailed, Message: clip(text), Since: o.since(plan.ErrorsSince, "", text)}})
	}
	for _, w := range plan.Waits {
		p := problem{weight: weightWait, on: w.On, isTimed: w.Timed, Link: Link{Object: o.ref, Reason: w.Reason, Message: clip(w.Message), Since: o.since(w.Since, w.Reason, w.Message)}}
		if c := o.detailsOf(w); c != nil {
			p.Type, p.Message = c.Type, clip(c.Message)
		}
		switch r, known := findRemedy(p.Link, now); {
		case w.User:
			p.weight, p.fixed = weightUser, waitRemedy(p.Link, now)
		case known && !r.automatic && !(o.isDeleting() && replaces(r.text)):
			p.weight = weightUser
		}
		out = append(out, p)
	}
	return out
}

// detailsOf returns the condition with the reason of a wait for a user, if its message is longer: conditions quote logs, waits
// do not.
func (o object) detailsOf(w Wait) *describe.Condition {
	i := slices.IndexFunc(o.conditions, func(c describe.Condition) bool {
		return w.User && c.Reason == w.Reason && classes[c.Type] == classOwn && !o.isExpected(c) && len(c.Message) > len(w.Message)
	})
	if i < 0 {
		return nil
	}
	return &o.conditions[i]
}

// reasonPlanFailed is the reason of a link whose last reconciliation failed.
const reasonPlanFailed = "ReconcileError"

// since returns the time when a wait or an error began: the transition of the condition with the same reason or message, or
// the recorded time if that is earlier, because records begin when the manager starts. Without both, it returns the transition
// of the first condition that is not as it should be.
func (o object) since(recorded time.Time, reason, message string) time.Time {
	message, _, _ = strings.Cut(message, "; ")
	for _, c := range o.conditions {
		if o.isExpected(c) || (reason == "" || c.Reason != reason) && (message == "" || !strings.Contains(c.Message, message)) {
			continue
		}
		if at := c.LastTransitionTime.Time; recorded.IsZero() || !at.IsZero() && at.Before(recorded) {
			return at
		}
	}
	if !recorded.IsZero() {
		return recorded
	}
	return o.troubleSince()
}

// candidate is an object that may be the next link of a chain.
type candidate struct {
	visit
	// through is the problem that names the object; nil for an object that is only owned or referred to.
	through *problem
}

// follow returns the best chain below an object, and the problem of the object that leads there. It returns nil if the
// object itself is the root cause. A warning explains only why no Node appears. A lost connection to the workload cluster
// explains an object that nothing else explains, because a machine that was stopped may be the reason for it.
func (s *search) follow(o object, problems []problem, upward bool, depth int) (*Chain, problem) {
	top := problems[0]
	accept := func(c candidate, chain *Chain) bool {
		switch {
		case chain.IsWarning():
			return top.weight == weightUnknown && c.through != nil && c.through.Reason == clusterv1.MachineNodeDoesNotExistReason
		case c.through != nil && c.through.isOfNode() && chain.Root().Type == "": // nothing reports that the infrastructure is at fault
			return false
		case top.weight == weightPaused:
			return c.through != nil
		case top.weight == weightUser:
			return c.through != nil && c.through.weight <= weightUser && chain.hasUserTask()
		case top.weight == weightUserTask && c.through == nil:
			return top.isMirror && s.hasSameRemedy(top.Link, chain)
		case top.weight == weightUserTask:
			return chain.hasUserTask()
		case c.through == nil && top.weight <= weightWait && !top.isMirror:
			return chain.hasUserTask() || chain.weight < weightSummary
		}
		return true
	}
	candidates := s.candidates(o, problems, upward)
	below := s.best(candidates, depth, func(c candidate, chain *Chain) bool {
		isOther := c.through == nil || !c.through.isLostConnection()
		return isOther && chain.hasUserTask() && accept(c, chain)
	})
	if below == nil {
		below = s.best(candidates, depth, accept)
	}
	if below == nil {
		return nil, top
	}
	return below, leading(problems, candidates, below.Links[0].Object)
}

// leading returns the problem of an object that describes the way to the next object best: the one that names it, else the
// first one that names no other object.
func leading(problems []problem, candidates []candidate, next Ref) problem {
	top, names := problems[0], map[*problem]bool{}
	for _, c := range candidates {
		if c.through != nil {
			names[c.through] = true
		}
		if c.ref == next && c.through != nil && (top.weight > weightUserTask || c.through.weight <= top.weight) {
			return *c.through
		}
	}
	for i := range problems {
		if top.weight > weightUserTask && !names[&problems[i]] {
			return problems[i]
		}
	}
	return top
}

// hasSameRemedy reports whether a problem and the root of a chain have the same remedy, as when a summary repeats the
// message of a dependent.
func (s *search) hasSameRemedy(l Link, c *Chain) bool {
	a, known := findRemedy(l, s.now)
	b, _ := findRemedy(c.Root(), s.now)
	return known && c.hasUserTask() && a.text == b.text
}

// candidates returns the objects that may explain the problems of an object: those that its waits and messages name, those
// that its spec refers to, and those that it owns.
func (s *search) candidates(o object, problems []problem, upward bool) (out []candidate) {
	seen, resolved := map[Ref]bool{o.ref: true}, map[mention]bool{}
	add := func(ref Ref, through *problem) {
		if !seen[ref] {
			seen[ref] = true
			out = append(out, candidate{visit{ref, o.isBelow(ref)}, through})
		}
	}
	for i := range problems {
		p := &problems[i]
		for _, on := range p.on {
			if ref, found := s.resolve(on, o.ref.Namespace); found {
				add(ref, p)
			}
		}
		named, isComplete := newMentions(o, p, resolved)
		if !isComplete {
			s.graph.ReachLimit(s.of, fmt.Sprintf("Only %d names in the messages of an object were looked up", maxResolved))
		}
		for _, m := range named {
			if ref, found := s.graph.Resolve(m.kind, m.namespace, m.name); found {
				add(ref, p)
			}
		}
	}
	for _, ref := range o.references() {
		add(ref, nil)
	}
	if !upward {
		for _, ref := range s.graph.Owned(o.ref) {
			add(ref, nil)
		}
	}
	if len(out) > maxChildren {
		s.graph.ReachLimit(s.of, fmt.Sprintf("Only %d objects that an object names, refers to or owns were considered", maxChildren))
	}
	return out[:min(len(out), maxChildren)]
}

// newMentions returns the objects that the message of a problem names, that may be followed and that are not resolved yet, and
// marks them as resolved. It reports false if the message names more than may be resolved.
func newMentions(o object, p *problem, resolved map[mention]bool) (out []mention, isComplete bool) {
	all, isComplete := mentions(p.Message, o.ref.Namespace)
	for _, m := range all {
		switch {
		case !o.canFollow(m) || resolved[m]:
		case len(resolved) >= maxResolved:
			return out, false
		default:
			resolved[m] = true
			out = append(out, m)
		}
	}
	return out, isComplete
}

// resolve completes a reference whose group may be unknown.
func (s *search) resolve(ref Ref, namespace string) (Ref, bool) {
	if ref.Group != "" {
		return ref, true
	}
	return s.graph.Resolve(ref.Kind, cmp.Or(ref.Namespace, namespace), ref.Name)
}

// isBelow reports whether the object is a dependent of another one: of its Cluster or of an owner.
func (o object) isBelow(of Ref) bool {
	if of.Group == clusterv1.GroupVersion.Group && of.Kind == clusterv1.ClusterKind {
		return o.ref.Kind != clusterv1.ClusterKind
	}
	for _, owner := range o.content.GetOwnerReferences() {
		group, _, _ := strings.Cut(owner.APIVersion, "/")
		if owner.Kind == of.Kind && owner.Name == of.Name && group == of.Group {
			return true
		}
	}
	return false
}

// best returns the best chain of the candidates that are accepted; nil accepts all.
func (s *search) best(candidates []candidate, depth int, accept func(candidate, *Chain) bool) (best *Chain) {
	for _, c := range candidates {
		chain := s.visit(c.visit, depth+1)
		if chain == nil || accept != nil && !accept(c, chain) {
			continue
		}
		if best == nil || compareChains(chain, best) < 0 {
			best = chain
		}
	}
	return best
}

// compareChains sorts chains: those that end with a user's action first, mere progress last, then by the time when the
// cause began, then by length.
func compareChains(a, b *Chain) int {
	group := func(c *Chain) int {
		switch {
		case c.hasUserTask():
			return 0
		case c.IsWarning():
			return 3
		case c.weight >= weightSummary:
			return 2
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(group(a), group(b)),
		compareSince(a.Root().Since, b.Root().Since),
		cmp.Compare(len(b.Links), len(a.Links)),
	)
}
