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

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testkit"
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
	testkit.CompareGolden(t, "testdata/stories.txt", out.String())
}

func (w *world) run(t *testing.T) {
	t.Helper()
	if _, settled := w.settle(400); !settled {
		t.Fatalf("does not settle: %v", w.actions())
	}
}

// TestSimulation: in every order of events, with members that are lost and a controller that dies at any write: the controller never takes
// etcd below its quorum, never removes the member of a Machine that stays, never lets a Machine go with its member, never does two things at
// once, and brings the control plane back when the faults end. Machines have no nodeRef or a wrong one, Nodes claim other provider IDs, are
// deleted or left behind, members have not started, and people delete Machines and remove finalizers.
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
		if len(w.broken) > 0 {
			t.Errorf("seed %d: %v", seed, w.broken)
			return
		}
	}
	w.plane.Spec.Replicas = new(max(1, *w.plane.Spec.Replicas))
	for _, name := range w.names() { // faults end: what is down is found out
		if n := w.nodes["n-"+name]; n != nil && n.down {
			w.asks(name)
		}
	}
	if _, settled := w.settle(600); !settled {
		t.Errorf("seed %d: does not settle", seed)
	}
	if problem := w.isWhole(); problem != "" {
		t.Errorf("seed %d: %s; %v", seed, problem, decide(w.snapshot()).Waits)
	}
	if len(w.broken) > 0 {
		t.Errorf("seed %d: %v", seed, w.broken)
	}
}

// event is something that happens outside of the controller.
func (w *world) event(r *rand.Rand) {
	names := w.names()
	if len(names) == 0 {
		return
	}
	name := names[r.IntN(len(names))]
	m, n := w.machines[name], w.nodes["n-"+name]
	switch k := r.IntN(26); {
	case k < 8 && n == nil && !m.Status.NodeRef.IsDefined() && m.DeletionTimestamp.IsZero() && (len(w.members) == 0 || w.hasQuorum()):
		w.bootSomehow(r, name)
	case k < 8 && n != nil && n.unnamed: // etcd starts
		w.start(name)
	case k == 8 && n != nil && r.IntN(2) == 0: // what was not known is found out
		w.report(name)
	case k < 14:
		w.progress(name)
	case k == 14:
		w.plane = w.plane.DeepCopy()
		w.plane.Spec.Replicas = new(int32([]int{1, 3, 5}[r.IntN(3)]))
	case k == 15:
		w.plane = w.plane.DeepCopy()
		w.plane.Spec.KubeadmConfigSpec.PreKubeadmCommands = []string{fmt.Sprint(r.IntN(3))}
	case k == 16 && w.mayLose(name):
		n.down, n.since = true, w.now
	case k == 17 && n != nil && n.down && m.DeletionTimestamp.IsZero():
		w.asks(name)
	case k == 18 && m.DeletionTimestamp.IsZero() && len(names) > 1 && w.staying() == len(names) && r.IntN(3) == 0:
		w.delete(name) // by a person, whatever is known of it
	case k == 19 && n != nil && !m.Status.NodeRef.IsDefined() && m.DeletionTimestamp.IsZero() && w.now.Sub(n.created) > 5*time.Minute:
		w.asks(name) // nodeStartupTimeout is over
	case k == 20 && n != nil && r.IntN(3) == 0: // a person deletes the Node
		n.hidden = true
	case k == 21 && len(names) > 1 && w.mayLose(name) && r.IntN(3) == 0: // a person removes the finalizers; the host may stay
		if delete(w.machines, name); r.IntN(2) == 0 {
			n.gone, n.since = true, w.now
			w.elect()
		}
	case k == 22 && n != nil && r.IntN(3) == 0: // another provider ID, and no nodeRef
		n.providerID = []string{"", "q://" + name, "p://" + names[r.IntN(len(names))]}[r.IntN(3)]
		m = m.DeepCopy()
		m.Status.NodeRef = clusterv1.MachineNodeReference{}
		w.machines[name] = m
	}
}

// bootSomehow boots a Machine of which not everything may be found out.
func (w *world) bootSomehow(r *rand.Rand, name string) {
	initial := len(w.members) == 0
	n := w.boot(name)
	if initial {
		return
	}
	m := w.machines[name].DeepCopy()
	switch r.IntN(8) {
	case 0: // the provider ID is in another form
		m.Status.NodeRef, n.providerID = clusterv1.MachineNodeReference{}, "q://"+name
	case 1: // and there are no addresses
		m.Status.NodeRef, n.providerID, m.Status.Addresses = clusterv1.MachineNodeReference{}, "", nil
	case 2: // its Node claims to be another one
		names := w.names()
		m.Status.NodeRef, n.providerID = clusterv1.MachineNodeReference{}, "p://"+names[r.IntN(len(names))]
	case 3: // another Node claims to be this one
		names := w.names()
		m.Status.NodeRef.Name = "n-" + names[r.IntN(len(names))]
	case 4: // kubelet registers before etcd starts
		n.unnamed, n.learner = true, true
	case 5:
		n.unnamed, n.learner, n.hidden = true, true, true
		m.Status.NodeRef, m.Status.Addresses = clusterv1.MachineNodeReference{}, nil
	}
	w.machines[name] = m
	w.elect()
}

// staying counts the Machines that are not being deleted.
func (w *world) staying() int {
	count := 0
	for _, m := range w.machines {
		if m.DeletionTimestamp.IsZero() {
			count++
		}
	}
	return count
}

// mayLose reports whether etcd keeps its quorum without the host of a Machine.
func (w *world) mayLose(name string) bool {
	n := w.nodes["n-"+name]
	if n == nil || n.down || n.gone {
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
		if m.Deleted && s.memberObstacle(m) == "" {
			n++
		}
	}
	return n
}

// checkPlan: at most one Machine is created or deleted, and none while another is deleted.
func checkPlan(t *testing.T, w *world, p reconciler.Plan, deleting int) {
	t.Helper()
	changes := slices.DeleteFunc(slices.Clone(p.Actions), func(a reconciler.Action) bool {
		switch a := a.(type) {
		case createMachine:
			return false
		case machines.DeleteMachines:
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
