package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controllers/machinedeployment"
	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/plan/memory"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// fate is what becomes of the Machines of a version.
type fate string

const (
	works  fate = "available"
	stalls fate = "stalled" // its Node is healthy, and something else keeps it from being ready
	breaks fate = "broken"  // its Node is not healthy
)

// rolled is a MachineDeployment in memory under its two controllers. The test plays the Machines.
type rolled struct {
	*management
	fates map[string]fate
	log   []string
	// writes counts the events.
	writes int
	// ceiling is the most Machines there may be, floor how many stay available: those of the numbers of replicas that
	// a controller may still be acting on.
	ceiling, floor int32
	// frail worlds give up an available Machine where it cannot be told from others.
	frail bool
	// removing is set while a user deletes a Machine.
	removing bool
}

func newRolled(t *testing.T, rng *rand.Rand, replicas int32, strategy clusterv1.MachineDeploymentRolloutStrategy) *rolled {
	t.Helper()
	w := &rolled{management: newManagement(t, rng), fates: map[string]fate{}, ceiling: replicas}
	w.planned = w.note
	w.world.Observe(w.observe)
	play(w.management, &clusterv1.Cluster{ObjectMeta: meta("c")}, func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "localhost", Port: 1}
		c.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
	})
	w.workloads.Connect(client.ObjectKey{Namespace: "ns", Name: "c"})
	h := &infrav1.LocalMachineTemplate{ObjectMeta: meta("h")}
	h.Spec.Template.Spec.Backend.Container = &infrav1.ContainerMachine{}
	w.must(w.Create(t.Context(), h))
	d := &clusterv1.MachineDeployment{ObjectMeta: meta("md")}
	d.Spec.ClusterName, d.Spec.Replicas, d.Spec.Rollout.Strategy = "c", &replicas, strategy
	d.Spec.Selector.MatchLabels = map[string]string{clusterv1.MachineDeploymentNameLabel: "md"}
	d.Spec.Template.Labels = map[string]string{clusterv1.MachineDeploymentNameLabel: "md"}
	d.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.1", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")}}
	d.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachineTemplate", Name: "h"}
	w.must(w.Create(t.Context(), d))
	l := w.limits()
	w.ceiling, w.floor = replicas+l.MaxSurge, l.MinAvailable(replicas)
	w.run(func(s reconciler.Setup) error {
		return errors.Join(machinedeployment.Add(s, nil, machinedeployment.Settings{}), machineset.Add(s, w.workloads, machineset.Settings{}))
	})
	return w
}

func (w *rolled) say(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// note logs the actions of a plan. That a MachineSet evaluates its Machines is not worth a line.
func (w *rolled) note(by reconciler.PlanKey, p reconciler.Plan) {
	name := by.Key.Name
	if by.Controller == machinedeployment.Name {
		name = "deployment"
	}
	for _, a := range p.Actions {
		if text := a.String(); !strings.HasPrefix(text, "set conditions of ") {
			w.say("%s: %s", name, text)
		}
	}
}

// observe checks the limits of a rollout whenever a Machine is created or deleted.
func (w *rolled) observe(e memory.Event) {
	w.writes++
	if e.Kind.Kind != "Machine" {
		return
	}
	if n := int32(len(w.machines())); e.Old == nil && n > w.ceiling {
		w.t.Fatalf("DP-06: %d Machines, at most %d\n%s", n, w.ceiling, w.text())
	}
	if e.Old == nil || e.New == nil || e.Old.GetDeletionTimestamp() != nil || e.New.GetDeletionTimestamp() == nil || w.removing {
		return
	}
	m := &clusterv1.Machine{}
	w.must(runtime.DefaultUnstructuredConverter.FromUnstructured(e.Old.Object, m))
	left := int32(0)
	for _, other := range w.machines() {
		if available(other) {
			left++
		}
	}
	if available(m) && left < w.floor && !w.frail && !w.limits().OnDelete {
		w.t.Fatalf("DP-06: %d available Machines after the deletion of %s, at least %d required\n%s", left, m.Name, w.floor, w.text())
	}
}

func (w *rolled) deployment() *clusterv1.MachineDeployment {
	return all[clusterv1.MachineDeployment](w.management)[0]
}

// sets are the MachineSets by name.
func (w *rolled) sets() []*clusterv1.MachineSet { return all[clusterv1.MachineSet](w.management) }

// machines are the Machines by name.
func (w *rolled) machines() []*clusterv1.Machine { return all[clusterv1.Machine](w.management) }

// user changes the spec of the deployment.
func (w *rolled) user(does string, change func(*clusterv1.MachineDeployment)) {
	w.t.Helper()
	w.say("user: %s", does)
	w.pass(time.Second)
	d := w.deployment()
	before := d.DeepCopy()
	change(d)
	w.must(w.Patch(w.t.Context(), d, client.MergeFrom(before), client.FieldOwner("user")))
	l := w.limits()
	w.ceiling, w.floor = max(w.ceiling, *d.Spec.Replicas+l.MaxSurge), min(w.floor, l.MinAvailable(*d.Spec.Replicas))
	w.proceed()
}

func (w *rolled) version(v string, becomes fate) {
	w.fates[v] = becomes
	w.user("version "+v, func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = v })
}

func (w *rolled) scale(n int32) {
	w.user(fmt.Sprintf("%d replicas", n), func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = &n })
}

func (w *rolled) limits() rollout.Limits {
	d := w.deployment()
	l, err := rollout.Resolve(d.Spec.Rollout.Strategy, *d.Spec.Replicas)
	w.must(err)
	return l
}

// turn makes something of the n-th Machine of a version.
func (w *rolled) turn(version string, n int, to fate) {
	for _, m := range w.machines() {
		if m.Spec.Version != version {
			continue
		}
		if n--; n < 0 {
			w.say("%s: %s", m.Name, to)
			w.become(m, to)
			return
		}
	}
}

// remove is what a user does to the first Machine of a version.
func (w *rolled) remove(version string) {
	for _, m := range w.machines() {
		if m.Spec.Version == version && m.DeletionTimestamp.IsZero() {
			w.say("user: delete %s", m.Name)
			w.removing = true
			w.must(w.Delete(w.t.Context(), m))
			w.proceed()
			w.removing = false
			return
		}
	}
}

func (w *rolled) become(m *clusterv1.Machine, f fate) {
	w.pass(time.Second)
	play(w.management, m, func(m *clusterv1.Machine) {
		m.Status.NodeRef.Name = m.Name
		is := func(t string, ok bool) {
			c := metav1.Condition{Type: t, Status: "False", Reason: "Played", LastTransitionTime: metav1.NewTime(w.world.Now())}
			if ok {
				c.Status = "True"
			}
			m.Status.Conditions = append(slices.DeleteFunc(m.Status.Conditions, func(c metav1.Condition) bool { return c.Type == t }), c)
		}
		is(clusterv1.MachineNodeHealthyCondition, f != breaks)
		is(clusterv1.MachineReadyCondition, f == works)
		is(clusterv1.MachineAvailableCondition, f == works)
	})
}

// leave ends the deletion of a Machine.
func (w *rolled) leave(m *clusterv1.Machine) {
	w.pass(time.Second)
	w.must(w.world.API.Remove(infrav1.GroupVersion.WithKind("LocalMachine"), client.ObjectKeyFromObject(m), "test"))
	play(w.management, m, func(m *clusterv1.Machine) { m.Finalizers = nil })
}

// judge sets for the Machine controller whether the Machines are up to date.
func (w *rolled) judge() {
	d, sets := w.deployment(), w.sets()
	for _, m := range w.machines() {
		i := slices.IndexFunc(sets, func(s *clusterv1.MachineSet) bool { return metav1.IsControlledBy(m, s) && metav1.IsControlledBy(s, d) })
		if i < 0 || !m.DeletionTimestamp.IsZero() {
			continue
		}
		if verdict := rollout.UpToDateCondition(m, sets[i], d, w.world.Now()); judges(m, verdict) {
			play(w.management, m, func(m *clusterv1.Machine) { judgeMachine(m, verdict, w.world.Now()) })
		}
	}
}

// judges reports whether the verdict on a Machine differs from its condition.
func judges(m *clusterv1.Machine, verdict condition.Result) bool {
	c := condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition)
	return c == nil || c.Status != verdict.Status || c.Message != verdict.Message
}

// judgeMachine sets whether a Machine is up to date.
func judgeMachine(m *clusterv1.Machine, verdict condition.Result, now time.Time) {
	table := condition.Table[condition.Result]{{Type: clusterv1.MachineUpToDateCondition, Compute: func(v condition.Result) condition.Result { return v }}}
	m.Status.Conditions = append(slices.DeleteFunc(m.Status.Conditions, func(c metav1.Condition) bool { return c.Type == clusterv1.MachineUpToDateCondition }),
		table.Evaluate(verdict, reconciler.EvaluateOptionsFor(m, now))...)
}

func available(m *clusterv1.Machine) bool {
	return m.DeletionTimestamp.IsZero() && condition.Set(m.Status.Conditions).IsTrue(clusterv1.MachineAvailableCondition)
}

// steps lists what can happen next.
func (w *rolled) steps() []func() {
	out := w.requests()
	for _, m := range w.machines() {
		switch {
		case !m.DeletionTimestamp.IsZero():
			out = append(out, func() {
				w.say("%s: gone", m.Name)
				w.leave(m)
			})
		case !m.Status.NodeRef.IsDefined():
			out = append(out, func() {
				becomes := works
				if f, ok := w.fates[m.Spec.Version]; ok {
					becomes = f
				}
				w.say("%s: %s", m.Name, becomes)
				w.become(m, becomes)
			})
		}
	}
	return out
}

// settle goes on until nothing can happen any more, or for some steps.
func (w *rolled) settle(steps ...int) {
	w.t.Helper()
	most, idle := 5000, false
	if len(steps) > 0 {
		most = steps[0]
	}
	for n := 0; n < most; n++ {
		w.judge()
		next := w.steps()
		if len(next) == 0 && idle {
			l, d := w.limits(), w.deployment()
			w.ceiling, w.floor = *d.Spec.Replicas+l.MaxSurge, l.MinAvailable(*d.Spec.Replicas)
			return
		}
		before := w.writes
		if len(next) == 0 { // what waits for a time may go on
			idle = true
			w.pass(time.Minute)
			continue
		}
		w.pick(next)()
		idle = idle && w.writes == before
	}
	if len(steps) == 0 {
		w.t.Fatalf("does not settle\n%s", w.text())
	}
}

// counts says for every MachineSet how many of its Machines are available, and how many it shall have.
func (w *rolled) counts() string {
	var out []string
	for _, set := range w.byRevision() {
		n := 0
		for _, m := range w.machines() {
			if metav1.IsControlledBy(m, set) && available(m) {
				n++
			}
		}
		out = append(out, fmt.Sprintf("%s %d/%d", set.Spec.Template.Spec.Version, n, *set.Spec.Replicas))
	}
	return strings.Join(out, " ")
}

func (w *rolled) byRevision() []*clusterv1.MachineSet {
	return slices.SortedFunc(slices.Values(w.sets()), func(a, b *clusterv1.MachineSet) int {
		return strings.Compare(a.Annotations[clusterv1.RevisionAnnotation], b.Annotations[clusterv1.RevisionAnnotation])
	})
}

func (w *rolled) text() string { return strings.Join(w.log, "\n") + "\n" }

func (w *rolled) expect(when, want string) {
	w.t.Helper()
	w.settle()
	if got := w.counts(); got != want {
		w.t.Errorf("%s: %s, want %s\n%s", when, got, want, w.text())
	}
}
