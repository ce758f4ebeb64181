package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/rollout"
)

// health of a Machine in the world.
type health string

const (
	starting  health = "starting"  // has no Node yet: goes first when its MachineSet shrinks
	available health = "available" //
	stuck     health = "stuck"     // not available, though its Node is healthy: no one can tell it from the others
	broken    health = "broken"    // its Node is not healthy: goes first
	deleting  health = "deleting"
	updating  health = "updating" // in place: not available, and goes first when its MachineSet deletes Machines
	failed    health = "failed"   // its update in place failed
)

type machine struct {
	name string
	health
	// moved: another MachineSet handed it over; counted: the deployment's controller has counted it for the MachineSet that it is in.
	moved, counted bool
}

// set is a MachineSet of the world with its controller's state.
type set struct {
	rollout.MachineSet
	machines []*machine
	made     int
	becomes  health // what its Machines come to
	noCreate bool   // cluster.x-k8s.io/disable-machine-create
	moving   bool   // it hands over what it has too many
	refused  bool   // the API refuses what its Machines shall be
	awake    bool
	seen     string // the status its controller reported last
}

// world is a deployment with its MachineSets and Machines in memory. A controller is woken by what it watches: the
// deployment by itself and by every change of its MachineSets, a MachineSet by its spec and its Machines.
type world struct {
	t        *testing.T
	rng      *rand.Rand // nil: fixed order
	replicas int32
	limits   rollout.Limits
	held     bool
	sets     []*set // the last is the one of the current template
	awake    bool
	log      []string
	// ceiling is the most Machines there may be, floor how many stay available: those of the numbers of replicas that
	// someone may still be acting on.
	ceiling, floor int32
	// least is the smallest number of replicas that the deployment had since it was settled.
	least int32
	// frail worlds give up an available Machine where it cannot be told from others.
	frail bool
	// fails tells whether the next write of the deployment's controller fails; nil: none does.
	fails func() bool
	// inPlace tells whether the Machines of a MachineSet can be updated in place; nil: none can.
	inPlace func(set string) bool
	// created and deleted count Machines.
	created, deleted int
	// writes counts those of the deployment's controller, the ones that failed included.
	writes int
}

func newWorld(t *testing.T, rng *rand.Rand, replicas int32, limits rollout.Limits) *world {
	w := &world{t: t, rng: rng, replicas: replicas, limits: limits}
	w.ceiling, w.floor, w.least = replicas+limits.MaxSurge, limits.MinAvailable(replicas), replicas
	w.template("a", available)
	w.settle()
	return w
}

func (w *world) say(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// template is what users do: the deployment gets another template, whose Machines become what is said.
func (w *world) template(name string, becomes health) {
	w.say("user: template %s", name)
	at := slices.IndexFunc(w.sets, func(s *set) bool { return s.Name == name })
	next := &set{MachineSet: rollout.MachineSet{Name: name, Recorded: -1}, becomes: becomes}
	if at >= 0 {
		next = w.sets[at]
		w.sets = slices.Delete(w.sets, at, at+1)
	}
	for _, s := range w.sets {
		next.Revision = max(next.Revision, s.Revision)
	}
	next.Revision++
	w.sets, w.awake = append(w.sets, next), true
}

func (w *world) scale(replicas int32) {
	w.say("user: replicas %d", replicas)
	w.replicas, w.awake = replicas, true
	w.ceiling, w.floor = max(w.ceiling, replicas+w.limits.MaxSurge), min(w.floor, w.limits.MinAvailable(replicas))
	w.least = min(w.least, replicas)
}

func (w *world) hold(held bool) {
	w.say("user: paused %t", held)
	w.held, w.awake = held, true
}

// turn gives a Machine of a set another health; deleting is what users do.
func (w *world) turn(name string, n int, to health) {
	for _, s := range w.sets {
		if s.Name == name {
			w.say("%s: %s", s.machines[n].name, to)
			s.machines[n].health, s.awake = to, true
		}
	}
}

func (w *world) current() *set { return w.sets[len(w.sets)-1] }

// view is a MachineSet as planning sees it.
func (s *set) view() rollout.MachineSet {
	v := s.MachineSet
	v.Actual, v.Deleting, v.Available, v.Free = int32(len(s.machines)), s.count(deleting), s.count(available), s.count(starting)+s.count(broken)+s.count(failed)
	for _, m := range s.machines {
		switch {
		case m.health == updating && m.moved && m.counted: // not begun
			v.Free, v.NotBegun = v.Free+1, v.NotBegun+1
		case m.health == updating:
			v.Updating++
		}
		if m.isUncounted() && m.health != deleting {
			v.Moved++
		}
	}
	return v
}

func (m *machine) isUncounted() bool { return m.moved && !m.counted }

func (s *set) count(h health) int32 {
	var n int32
	for _, m := range s.machines {
		if m.health == h {
			n++
		}
	}
	return n
}

func (w *world) total(of func(*set) int32) int32 {
	var n int32
	for _, s := range w.sets {
		n += of(s)
	}
	return n
}

func (w *world) state() rollout.DeploymentState {
	st := rollout.DeploymentState{Replicas: w.replicas, Limits: w.limits, Paused: w.held}
	for i, s := range w.sets {
		v := s.view()
		if i == len(w.sets)-1 {
			st.New = &v
		} else {
			v.InPlace = w.inPlace != nil && w.inPlace(s.Name)
			st.Old = append(st.Old, v)
		}
	}
	return st
}

// planPass is a reconciliation by the deployment's controller. Each MachineSet is written by itself, with the number of replicas
// it is scaled for; a write that fails ends the reconciliation, which is retried.
func (w *world) planPass() {
	w.awake = false
	planned, moving := map[string]rollout.Change{}, rollout.Moving(w.state())
	for _, c := range rollout.Plan(w.state()) {
		planned[c.Set] = c
	}
	for _, s := range w.inOrder() {
		if !w.syncSet(s, planned[s.Name], moving[s.Name]) {
			w.awake = true
			return
		}
	}
	if w.held || !rollout.Complete(w.state()) {
		return
	}
	for _, s := range w.sets[:len(w.sets)-1] {
		w.say("plan: delete %s: the rollout is complete", s.Name)
	}
	w.sets = w.sets[len(w.sets)-1:]
}

// syncSet writes what is planned of one MachineSet; false: the write failed.
func (w *world) syncSet(s *set, c rollout.Change, moving bool) bool {
	noCreate := w.limits.OnDelete && s != w.current()
	if c.Set == "" && s.Recorded == w.replicas && s.noCreate == noCreate && s.moving == moving && s.view().Moved == 0 {
		return true
	}
	if w.writes++; w.fails != nil && w.fails() {
		w.say("plan: writing %s fails", s.Name)
		return false
	}
	if c.Set != "" {
		before := w.desired()
		w.say("plan: %s", c)
		s.Desired, s.awake, w.awake = c.To, true, true
		w.checkTotal(before)
	}
	for _, m := range s.machines {
		if m.moved {
			m.counted, s.awake = true, true
		}
	}
	s.Recorded, s.noCreate, s.moving = w.replicas, noCreate, moving
	return true
}

// inOrder returns the MachineSets as the plan has them: the current one, then the oldest first.
func (w *world) inOrder() []*set {
	return append([]*set{w.current()}, slices.SortedFunc(slices.Values(w.sets[:len(w.sets)-1]), func(a, b *set) int {
		return rollout.Older(a.MachineSet, b.MachineSet)
	})...)
}

// checkTotal fails where scaling takes more replicas than there were too many, in all.
func (w *world) checkTotal(before int32) {
	w.t.Helper()
	if now := w.desired(); w.held && now < before && now < w.least {
		w.t.Fatalf("DP-11: %d replicas are left, the deployment never wanted fewer than %d\n%s", now, w.least, w.text())
	}
}

func (w *world) desired() int32 { return w.total(func(s *set) int32 { return s.Desired }) }

// setPass is a pass of a MachineSet's controller.
func (w *world) setPass(s *set) {
	s.awake = false
	for _, m := range s.machines {
		if m.moved && m.counted && m.health != deleting && !s.refused && !(s.moving && s.held()-s.count(deleting) > s.Desired) {
			w.say("%s: update in place begins", m.name)
			m.moved, m.counted = false, false
		}
	}
	for s.held() < s.Desired && !s.noCreate {
		s.made++
		w.created++
		m := &machine{name: fmt.Sprintf("%s%d", s.Name, s.made), health: starting}
		s.machines = append(s.machines, m)
		w.say("%s: create", m.name)
		w.checkSurge()
	}
	for n := s.held() - s.count(deleting) - s.Desired; n > 0; n-- {
		w.shrink(s)
	}
	if status := fmt.Sprint(s.view()); status != s.seen {
		s.seen, w.awake = status, true
	}
}

// held counts the Machines that the set's replicas are about.
func (s *set) held() int32 {
	var n int32
	for _, m := range s.machines {
		if !m.isUncounted() || m.health == deleting {
			n++
		}
	}
	return n
}

// shrink deletes one Machine of the set, in the order of MS-10, or hands one over.
func (w *world) shrink(s *set) {
	var first, rest []*machine
	for _, m := range s.machines {
		switch m.health {
		case starting, broken, failed:
			first = append(first, m)
		case updating:
			if !m.isUncounted() && (!s.moving || m.moved) {
				first = append([]*machine{m}, first...)
			}
		case available, stuck:
			rest = append(rest, m)
		}
	}
	if len(first)+len(rest) == 0 {
		return // what is being updated is waited for
	}
	m := append(first, rest...)[0]
	if len(first) == 0 && w.rng != nil {
		m = rest[w.rng.IntN(len(rest))]
	}
	if s.moving && (len(first) == 0 || m.health == updating) {
		w.move(s, m)
		return
	}
	w.deleted++
	was := m.health
	m.health = deleting
	w.say("%s: delete", m.name)
	if was == available {
		w.checkAvailable(m)
	}
}

// move hands a Machine over to the current set.
func (w *world) move(s *set, m *machine) {
	to := w.current()
	was := m.health
	m.health, m.moved, m.counted = updating, true, false
	s.machines = slices.DeleteFunc(s.machines, func(other *machine) bool { return other == m })
	to.machines = append(to.machines, m)
	to.awake = true
	w.say("%s: hand over to %s", m.name, to.Name)
	if was == available {
		w.checkAvailable(m)
	}
}

func (w *world) checkSurge() {
	w.t.Helper()
	if n := w.total(func(s *set) int32 { return int32(len(s.machines)) }); n > w.ceiling {
		w.t.Fatalf("DP-06: %d Machines, at most %d\n%s", n, w.ceiling, w.text())
	}
}

func (w *world) checkAvailable(m *machine) {
	w.t.Helper()
	if n := w.total(func(s *set) int32 { return s.count(available) }); n < w.floor && !w.frail && !w.limits.OnDelete {
		w.t.Fatalf("DP-06: %d available Machines after the deletion of %s, at least %d required\n%s",
			n, m.name, w.floor, w.text())
	}
}

// advance brings a Machine one step on; it reports whether there was one.
func (w *world) advance(s *set, m *machine) bool {
	switch {
	case m.health == deleting:
		s.machines = slices.DeleteFunc(s.machines, func(other *machine) bool { return other == m })
		w.say("%s: gone", m.name)
	case m.health == starting && s.becomes != starting:
		m.health = s.becomes
		w.say("%s: %s", m.name, m.health)
	case m.health == updating && !m.moved:
		m.health = map[health]health{available: available, stuck: stuck, broken: failed, starting: failed}[s.becomes]
		w.say("%s: %s", m.name, m.health)
	default:
		return false
	}
	s.awake = true
	return true
}

// steps lists what can happen next.
func (w *world) steps() []func() {
	var out []func()
	if w.awake {
		out = append(out, w.planPass)
	}
	for _, s := range w.sets {
		if s.awake {
			out = append(out, func() { w.setPass(s) })
		}
		for _, m := range s.machines {
			if m.health == deleting || m.health == starting && s.becomes != starting || m.health == updating && !m.moved {
				out = append(out, func() { w.advance(s, m) })
			}
		}
	}
	return out
}

// step does one thing; false: nothing is left to do.
func (w *world) step() bool {
	steps := w.steps()
	if len(steps) == 0 {
		return false
	}
	if w.rng == nil {
		steps[0]()
	} else {
		steps[w.rng.IntN(len(steps))]()
	}
	return true
}

// settle goes on until nothing can happen any more.
func (w *world) settle() {
	w.t.Helper()
	for n := 0; w.step(); n++ {
		if n > 5000 {
			w.t.Fatalf("does not settle\n%s", w.text())
		}
	}
	w.ceiling, w.floor, w.least = w.replicas+w.limits.MaxSurge, w.limits.MinAvailable(w.replicas), w.replicas
}

// after makes so many steps.
func (w *world) after(n int) {
	for range n {
		w.step()
	}
}

func (w *world) text() string { return strings.Join(w.log, "\n") + "\n" }

// counts says how many Machines each set has, and how many of them are available.
func (w *world) counts() string {
	var out []string
	for _, s := range w.sets {
		out = append(out, fmt.Sprintf("%s %d/%d", s.Name, s.count(available), s.Desired))
	}
	return strings.Join(out, " ")
}
