package controlplane

import (
	"strings"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
)

// unreferenced takes the nodeRef of a Machine, whose Node has a provider ID in another form.
func (w *world) unreferenced(name string) {
	m := w.machines[name].DeepCopy()
	m.Status.NodeRef, m.Status.Addresses = clusterv1.MachineNodeReference{}, nil
	w.machines[name] = m
	w.nodes["n-"+name].providerID = "q://" + name
}

func (w *world) passes(t *testing.T, count int) {
	t.Helper()
	for range count {
		w.now = w.now.Add(15 * time.Second)
		w.pass(-1)
		for _, name := range w.names() {
			w.progress(name)
		}
	}
	if len(w.broken) > 0 || !w.hasQuorum() {
		t.Errorf("%v; quorum %v\n%s", w.broken, w.hasQuorum(), strings.Join(w.actions(), "\n"))
	}
}

func (w *world) condition(conditionType string) string {
	s := w.snapshot()
	c := condition.Set(report(s, decide(s), reconciler.Outcome{}).Status.(controlplanev1.KubeadmControlPlaneStatus).Conditions).Get(conditionType)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Message
}

// A Machine without a nodeRef has a member of etcd: the quorum that there is is not denied, a health check gets its replacement, and the
// Machine goes after its member.
func TestMachineWithoutNodeRef(t *testing.T) { // KC-11, KC-12, KC-13, KC-19
	second := func(w *world) string { return w.names()[1] }
	two := func(t *testing.T) *world {
		w := newWorld(1).withCertificates(t)
		w.run(t)
		w.plane.Spec.Replicas = new(int32(3))
		w.passes(t, 1)
		w.boot(second(w))
		w.unreferenced(second(w))
		w.now = w.now.Add(20 * time.Minute)
		w.pass(-1)
		return w
	}
	t.Run("available", func(t *testing.T) {
		w := two(t)
		if got := w.condition("Available"); !strings.HasPrefix(got, "True") {
			t.Error(got)
		}
	})
	t.Run("deleted", func(t *testing.T) {
		w := two(t)
		name := second(w)
		w.delete(name)
		w.passes(t, 6)
		if _, left := w.machines[name]; left || len(w.members) != 1 {
			t.Errorf("Machine left %v, %d members\n%s", left, len(w.members), strings.Join(w.actions(), "\n"))
		}
	})
	t.Run("replaced", func(t *testing.T) {
		w := two(t)
		name := second(w)
		w.asks(name)
		w.passes(t, 8)
		if _, left := w.machines[name]; left {
			t.Errorf("not replaced\n%s", strings.Join(w.actions(), "\n"))
		}
		w.run(t)
		if problem := w.isWhole(); problem != "" {
			t.Error(problem)
		}
	})
	t.Run("which member is not known", func(t *testing.T) {
		w := running(t)
		names := w.names()
		w.unreferenced(names[0])
		w.unreferenced(names[1])
		w.delete(names[0])
		w.passes(t, 6)
		if _, left := w.machines[names[0]]; !left || len(w.members) != 3 {
			t.Errorf("a member was removed, or a Machine has gone, by guess\n%s", strings.Join(w.actions(), "\n"))
		}
		w.report(names[1])
		w.run(t)
		if problem := w.isWhole(); problem != "" {
			t.Error(problem)
		}
	})
}

// That Machines wait for each other while all is well is no reason to warn; that one never becomes healthy is.
func TestWarnings(t *testing.T) { // KC-07
	w := newWorld(3).withCertificates(t)
	w.run(t)
	w.plane.Spec.Version = "v1.36.3"
	w.run(t)
	if len(w.warnings) > 0 {
		t.Errorf("of a control plane that is created and upgraded: %v", w.warnings)
	}
	w.plane.Spec.Replicas = new(int32(5))
	w.nodes["n-"+w.names()[0]].down = true
	w.now = w.now.Add(time.Hour)
	w.pass(-1)
	if len(w.warnings) == 0 {
		t.Error("nothing of a Machine that is not healthy")
	}
}

// In an upgrade, the Nodes of Machines without a nodeRef stay; their members do not.
func TestUpgradeWithoutNodeRefs(t *testing.T) { // KC-12
	w := running(t)
	w.plane.Spec.Version = "v1.36.3"
	for range 200 {
		w.passes(t, 1)
		for _, name := range w.names() {
			if m := w.machines[name]; m.DeletionTimestamp.IsZero() && w.nodes["n-"+name] == nil {
				w.boot(name)
			}
		}
		for _, name := range w.names() { // the nodeRef of a Machine that leaves is taken
			if m := w.machines[name]; !m.DeletionTimestamp.IsZero() && w.nodes["n-"+name] != nil {
				w.unreferenced(name)
			}
		}
	}
	if len(w.members) != 3 || len(w.machines) != 3 {
		t.Errorf("%d members of %d Machines\n%s", len(w.members), len(w.machines), strings.Join(w.actions(), "\n"))
	}
}

// The member of a Machine whose finalizers were removed by hand goes, although its Node object is left.
func TestMemberLeftBehind(t *testing.T) { // KC-12
	w := running(t)
	name := w.names()[0]
	delete(w.machines, name)
	w.nodes["n-"+name].gone, w.nodes["n-"+name].since = true, w.now
	w.passes(t, 30)
	for _, left := range w.names() {
		w.repair(left)
	}
	w.run(t)
	if problem := w.isWhole(); problem != "" {
		t.Errorf("%s\n%s", problem, strings.Join(w.actions(), "\n"))
	}
	if _, is := w.members["n-"+name]; is {
		t.Error("its member is left")
	}
}

// A member without a Machine on a Node that is ready is not removed: the condition names the Node to delete.
func TestForeignMember(t *testing.T) { // KC-12
	w := running(t)
	name := w.names()[0]
	delete(w.machines, name)
	w.now = w.now.Add(15 * time.Minute)
	w.passes(t, 3)
	if _, is := w.members["n-"+name]; !is {
		t.Error("a member that runs was removed")
	}
	if got := w.condition("EtcdClusterHealthy"); !strings.Contains(got, "Etcd member n-"+name+" has no Machine: delete Node n-"+name) {
		t.Error(got)
	}
}

// kubelet registers the Node, kubeadm has added the learner, etcd has not started: the member is left alone until kubeadm has given up.
func TestUnnamedAfterNode(t *testing.T) { // KC-12
	w := newWorld(1).withCertificates(t)
	w.run(t)
	w.plane.Spec.Replicas = new(int32(3))
	w.passes(t, 1)
	name := w.names()[1]
	n := w.boot(name)
	n.unnamed, n.learner = true, true
	w.passes(t, 20)
	if _, is := w.members["n-"+name]; !is {
		t.Fatalf("the member of a Machine that joins was removed\n%s", strings.Join(w.actions(), "\n"))
	}
	n.unnamed, n.learner = false, false
	w.run(t)
	if problem := w.isWhole(); problem != "" {
		t.Error(problem)
	}
}
