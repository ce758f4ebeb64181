package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/rollout"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// fate is what becomes of the Machines of a version.
type fate string

const (
	works  fate = "available"
	stalls fate = "stalled" // its Node is healthy, and something else keeps it from being ready
	breaks fate = "broken"  // its Node is not healthy
)

// rolled is a MachineDeployment with all that comes of it in memory, over the decisions and reports of the two
// controllers. A controller is woken by what it watches, and by nothing else.
type rolled struct {
	t        *testing.T
	rng      *rand.Rand // nil: fixed order
	at       time.Time
	cluster  *clusterv1.Cluster
	d        *clusterv1.MachineDeployment
	sets     []*clusterv1.MachineSet // by name
	machines []*clusterv1.Machine    // by name
	fates    map[string]fate
	awake    map[string]bool // "": the deployment; otherwise a MachineSet
	made     int
	log      []string
	// ceiling is the most Machines there may be, floor how many stay available: those of the numbers of replicas that
	// someone may still be acting on.
	ceiling, floor int32
	// frail worlds give up an available Machine where it cannot be told from others.
	frail bool
}

func newRolled(t *testing.T, rng *rand.Rand, replicas int32, strategy clusterv1.MachineDeploymentRolloutStrategy) *rolled {
	w := &rolled{t: t, rng: rng, at: restoredNow(), fates: map[string]fate{}, awake: map[string]bool{"": true}}
	w.cluster = &clusterv1.Cluster{ObjectMeta: meta("c")}
	w.cluster.UID = "uid-c"
	d := &clusterv1.MachineDeployment{ObjectMeta: meta("md")}
	d.UID, d.Generation, d.CreationTimestamp = "uid-md", 1, metav1.NewTime(w.at)
	d.Finalizers, d.Labels = []string{clusterv1.MachineDeploymentFinalizer}, map[string]string{clusterv1.ClusterNameLabel: "c"}
	d.OwnerReferences = []metav1.OwnerReference{owner("Cluster", w.cluster, false)}
	d.Spec.ClusterName, d.Spec.Replicas, d.Spec.Rollout.Strategy = "c", &replicas, strategy
	d.Spec.Selector.MatchLabels = map[string]string{clusterv1.MachineDeploymentNameLabel: "md"}
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	d.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.1", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")}}
	d.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "p", Kind: "HostTemplate", Name: "h"}
	w.d = d
	return w
}

func (w *rolled) say(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// user changes the spec of the deployment.
func (w *rolled) user(does string, change func(*clusterv1.MachineDeployment)) {
	w.say("user: %s", does)
	change(w.d)
	w.d.Generation++
	w.awake[""] = true
	for _, set := range w.sets {
		w.awake[set.Name] = true
	}
	l := w.limits()
	w.ceiling, w.floor = max(w.ceiling, *w.d.Spec.Replicas+l.MaxSurge), min(w.floor, l.MinAvailable(*w.d.Spec.Replicas))
}

func (w *rolled) version(v string, becomes fate) {
	w.fates[v] = becomes
	w.user("version "+v, func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = v })
}

func (w *rolled) scale(n int32) {
	w.user(fmt.Sprintf("%d replicas", n), func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = &n })
}

func (w *rolled) limits() rollout.Limits {
	l, err := rollout.Resolve(w.d.Spec.Rollout.Strategy, *w.d.Spec.Replicas)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// turn makes something of the n-th Machine of a version.
func (w *rolled) turn(version string, n int, to fate) {
	for _, m := range w.machines {
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
	for _, m := range w.machines {
		if m.Spec.Version == version && m.DeletionTimestamp.IsZero() {
			w.say("user: delete %s", m.Name)
			w.leave(m)
			return
		}
	}
}

func (w *rolled) leave(m *clusterv1.Machine) {
	m.DeletionTimestamp = ptr.To(metav1.NewTime(w.at))
	w.wakeOf(m)
}

func (w *rolled) become(m *clusterv1.Machine, f fate) {
	m.Status.NodeRef.Name = m.Name
	is := func(t string, ok bool) {
		c := metav1.Condition{Type: t, Status: "False", Reason: "Said", LastTransitionTime: metav1.NewTime(w.at)}
		if ok {
			c.Status = "True"
		}
		m.Status.Conditions = append(slices.DeleteFunc(m.Status.Conditions, func(c metav1.Condition) bool { return c.Type == t }), c)
	}
	is(clusterv1.MachineNodeHealthyCondition, f != breaks)
	is(clusterv1.MachineReadyCondition, f == works)
	is(clusterv1.MachineAvailableCondition, f == works)
	w.wakeOf(m)
}

// wakeOf wakes the MachineSet that controls the Machine, or those that may adopt it.
func (w *rolled) wakeOf(m *clusterv1.Machine) {
	for _, set := range w.sets {
		if ownership.ControllerOf(m, set.UID) != ownership.OtherController {
			w.awake[set.Name] = true
		}
	}
}

func available(m *clusterv1.Machine) bool {
	return m.DeletionTimestamp.IsZero() && condition.Set(m.Status.Conditions).IsTrue(clusterv1.MachineAvailableCondition)
}

// template is that of the infrastructure, which is the same all the time.
func (w *rolled) template() contract.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "p/v1", "kind": "HostTemplate"}}
	u.SetName("h")
	u.SetOwnerReferences([]metav1.OwnerReference{owner("Cluster", w.cluster, false)})
	return contract.Object{Unstructured: u, Contract: contract.V1Beta2}
}

// steps lists what can happen next.
func (w *rolled) steps() []func() {
	var out []func()
	if w.awake[""] {
		out = append(out, w.deploymentPass)
	}
	for _, set := range w.sets {
		if w.awake[set.Name] {
			out = append(out, func() { w.setPass(set) })
		}
	}
	for _, m := range w.machines {
		switch {
		case !m.DeletionTimestamp.IsZero():
			out = append(out, func() {
				w.machines = slices.DeleteFunc(w.machines, func(other *clusterv1.Machine) bool { return other == m })
				w.say("%s: gone", m.Name)
				w.wakeOf(m)
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
	most := 5000
	if len(steps) > 0 {
		most = steps[0]
	}
	for n := 0; n < most; n++ {
		next := w.steps()
		if len(next) == 0 {
			l := w.limits()
			w.ceiling, w.floor = *w.d.Spec.Replicas+l.MaxSurge, l.MinAvailable(*w.d.Spec.Replicas)
			return
		}
		if w.rng == nil {
			next[0]()
		} else {
			next[w.rng.IntN(len(next))]()
		}
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
		for _, m := range w.machines {
			if ownership.ControllerOf(m, set.UID) == ownership.ThisController && available(m) {
				n++
			}
		}
		out = append(out, fmt.Sprintf("%s %d/%d", set.Spec.Template.Spec.Version, n, *set.Spec.Replicas))
	}
	return strings.Join(out, " ")
}

func (w *rolled) byRevision() []*clusterv1.MachineSet {
	return slices.SortedFunc(slices.Values(w.sets), func(a, b *clusterv1.MachineSet) int {
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
