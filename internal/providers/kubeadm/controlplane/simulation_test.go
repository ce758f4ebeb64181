package controlplane

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/action"
	"github.com/slipwayhq/slipway/internal/testkit/golden"
)

// Stories of a control plane: what is done, in order.
func TestStories(t *testing.T) { // KC-04, KC-05, KC-06, KC-08, KC-09, KC-11, KC-18, KC-21, KC-22
	var out strings.Builder
	tell := func(title string, w *world) {
		fmt.Fprintf(&out, "# %s\n", title)
		for _, line := range w.actions() {
			fmt.Fprintln(&out, line)
		}
		w.log = nil
		if problem := w.isWhole(); problem != "" {
			t.Errorf("%s: %s", title, problem)
		}
	}
	w := newWorld(3).withCertificates(t)
	w.cluster.Status.FailureDomains = []clusterv1.FailureDomain{
		{Name: "a", ControlPlane: new(true)}, {Name: "b", ControlPlane: new(true)}, {Name: "c", ControlPlane: new(true)}, {Name: "w"},
	}
	w.run(t)
	tell("create a control plane of three", w)
	w.plane.Spec.Version = "v1.36.3"
	w.run(t)
	tell("upgrade it", w)
	name := w.names()[0]
	w.nodes["n-"+name].down = true
	w.asks(name)
	w.run(t)
	tell("replace a Machine that is not healthy", w)
	w.plane.Spec.Replicas = new(int32(1))
	w.run(t)
	tell("scale down to one", w)
	w.plane.Spec.Replicas = new(int32(5))
	w.run(t)
	tell("scale up to five", w)
	for _, name := range w.names()[:2] {
		w.nodes["n-"+name].down = true
		w.asks(name)
	}
	w.run(t)
	tell("replace two of five that were lost at once", w)
	w.plane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(0))
	w.plane.Spec.KubeadmConfigSpec.PreKubeadmCommands = []string{"true"}
	w.run(t)
	tell("another configuration, without a surge", w)
	golden.Compare(t, "testdata/stories.txt", out.String())
}

func (w *world) run(t *testing.T) {
	t.Helper()
	if _, settled := w.settle(400); !settled {
		t.Fatalf("does not settle: %v", w.actions())
	}
}

// TestSimulation: in every order of events, with members that are lost and a controller that dies at any write: the controller never takes
// etcd below its quorum, never does two things at once, and brings the control plane back when the faults end.
func TestSimulation(t *testing.T) { // KC-12, KC-19, KC-20
	seeds := 300
	if text := os.Getenv("SLIPWAY_SEEDS"); text != "" {
		seeds, _ = strconv.Atoi(text)
	}
	first := newWorld(1).withCertificates(t)
	for seed := range uint64(seeds) {
		w := newWorld(int32([]int{1, 3, 5}[seed%3]))
		w.secrets, w.kubeconfig = first.secrets, first.kubeconfig
		simulate(t, w, rand.New(rand.NewPCG(seed, 2)), seed)
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, strings.Join(w.actions(), "\n"))
		}
	}
}

func simulate(t *testing.T, w *world, r *rand.Rand, seed uint64) {
	t.Helper()
	for range 150 {
		w.now = w.now.Add(time.Duration(r.IntN(30)) * time.Second)
		w.event(r)
		crash := -1
		if r.IntN(4) == 0 {
			crash = r.IntN(3)
		}
		before, deleting := w.hasQuorum(), w.deleting()
		plan := w.pass(crash)
		checkPlan(t, w, plan, deleting)
		if before && !w.hasQuorum() {
			t.Errorf("seed %d: no quorum after %v", seed, plan.Actions)
			return
		}
	}
	w.plane.Spec.Replicas = new(max(1, *w.plane.Spec.Replicas))
	for _, name := range w.names() { // faults end: what is down is found out
		if n := w.nodes[w.machines[name].Status.NodeRef.Name]; n != nil && n.down {
			w.asks(name)
		}
	}
	if _, settled := w.settle(600); !settled {
		t.Errorf("seed %d: does not settle", seed)
	}
	if problem := w.isWhole(); problem != "" {
		t.Errorf("seed %d: %s; %v", seed, problem, Decide(w.snapshot()).Wait)
	}
}

// event is something that happens outside of the controller.
func (w *world) event(r *rand.Rand) {
	names := w.names()
	if len(names) == 0 {
		return
	}
	name := names[r.IntN(len(names))]
	m := w.machines[name]
	switch n := r.IntN(20); {
	case n < 8 && !m.Status.NodeRef.IsDefined() && m.DeletionTimestamp.IsZero() && (len(w.members) == 0 || w.hasQuorum()):
		w.boot(name)
	case n < 14:
		w.progress(name)
	case n == 14:
		w.plane = w.plane.DeepCopy()
		w.plane.Spec.Replicas = new(int32([]int{1, 3, 5}[r.IntN(3)]))
	case n == 15:
		w.plane = w.plane.DeepCopy()
		w.plane.Spec.KubeadmConfigSpec.PreKubeadmCommands = []string{fmt.Sprint(r.IntN(3))}
	case n == 16 && w.mayLose(name):
		w.nodes[m.Status.NodeRef.Name].down = true
	case n == 17 && m.Status.NodeRef.IsDefined() && w.nodes[m.Status.NodeRef.Name].down && m.DeletionTimestamp.IsZero():
		w.asks(name)
	case n == 18 && m.Status.NodeRef.IsDefined() && m.DeletionTimestamp.IsZero() && len(names) > 1 && len(w.snapshot().candidates()) == len(names) && r.IntN(4) == 0:
		w.delete(name) // by a person
	}
}

// mayLose reports whether etcd keeps its quorum without a Node.
func (w *world) mayLose(name string) bool {
	n := w.nodes[w.machines[name].Status.NodeRef.Name]
	if n == nil || n.down {
		return false
	}
	n.down = true
	defer func() { n.down = false }()
	return w.hasQuorum() && w.machines[name].DeletionTimestamp.IsZero()
}

// deleting counts the Machines that are being deleted, without those that are held until others are healthy.
func (w *world) deleting() int {
	n, s := 0, w.snapshot()
	for _, m := range s.Machines {
		if m.Deleted && !s.isHeld(m) {
			n++
		}
	}
	return n
}

// checkPlan: at most one Machine is created or deleted, and none while another is deleted.
func checkPlan(t *testing.T, w *world, p loop.Plan, deleting int) {
	t.Helper()
	changes := slices.DeleteFunc(slices.Clone(p.Actions), func(a loop.Action) bool {
		switch a := a.(type) {
		case action.CreateMachine:
			return false
		case machines.Delete:
			return len(a.Names) == 0
		}
		return true
	})
	if len(changes) > 1 || len(changes) == 1 && deleting > 0 {
		t.Errorf("%d Machines are being deleted, and: %v", deleting, p.Actions)
	}
	if n := len(w.machines); n > 6 {
		t.Errorf("%d Machines", n)
	}
}
