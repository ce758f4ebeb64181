package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/addons"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// apply carries out an action.
func (w *world) apply(s snapshot, do reconciler.Action) {
	w.log = append(w.log, do.String())
	switch a := do.(type) {
	case createMachine:
		w.create(s, a)
	case machines.DeleteMachines:
		for _, name := range a.Names {
			w.delete(name)
		}
	case setConditions:
		m := w.machines[a.Machine]
		for _, t := range a.Types {
			m.Status.Conditions = slices.DeleteFunc(m.Status.Conditions, func(c metav1.Condition) bool { return c.Type == t })
		}
		for _, c := range a.Conditions {
			set(m, c)
		}
	case removeHook:
		m := w.machines[a.Machine]
		kube.Annotate(m, controlplanev1.PreTerminateHookCleanupAnnotation, nil)
	case addons.Change:
		w.left = addons.KubeadmState{}
		if err := addons.Apply(context.Background(), kube.NewWriter(w.kubeadm, Name), a); err != nil {
			panic(err)
		}
	case moveLeader:
		w.leader = a.Node
	case removeMember:
		for name, id := range w.members {
			if id == a.ID {
				w.checkRemoval(name)
				delete(w.members, name)
			}
		}
		w.elect()
	case recordRemediation:
		w.plane = w.plane.DeepCopy()
		kube.Annotate(w.plane, controlplanev1.RemediationInProgressAnnotation, new(a.Record.Text()))
	case clearRemediation:
		w.plane = w.plane.DeepCopy()
		kube.Annotate(w.plane, controlplanev1.RemediationInProgressAnnotation, nil)
	}
}

func (w *world) create(s snapshot, a createMachine) {
	d := s.definition()
	d.Spec.FailureDomain = a.Domain
	if text, ok := s.ControlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation]; ok && a.Joins {
		d.MachineAnnotations[controlplanev1.RemediationForAnnotation] = text
	}
	m := d.Machine(a.Name)
	m.UID, m.CreationTimestamp, m.Generation = types.UID(a.Name), metav1.NewTime(w.now), 1
	w.machines[a.Name] = m
	w.configs[a.Name] = &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Name: a.Name}, Spec: desiredConfig(s.ControlPlane, a.Joins)}
	infra, err := clone.New(clone.Options{Template: s.Infra.Object, Name: a.Name, Cluster: "c", Owner: d.Owner, Labels: d.Labels, Annotations: d.Annotations})
	if err != nil {
		panic(err)
	}
	w.infra[a.Name] = infra
}

func (w *world) delete(name string) {
	m := w.machines[name].DeepCopy()
	if m.DeletionTimestamp.IsZero() {
		m.DeletionTimestamp = new(metav1.NewTime(w.now))
	}
	w.machines[name] = m
}

func set(m *clusterv1.Machine, c metav1.Condition) {
	m.Status.Conditions = append(slices.DeleteFunc(m.Status.Conditions, func(old metav1.Condition) bool { return old.Type == c.Type }), c)
}

// checkRemoval: the member of a Machine that stays is not removed, unless kubeadm has given up to start it.
func (w *world) checkRemoval(name string) {
	n := w.nodes[name]
	if n == nil || n.gone || n.unnamed && w.now.Sub(n.created) > 9*time.Minute {
		return
	}
	if m := w.machines[n.host]; m != nil && m.DeletionTimestamp.IsZero() {
		w.broken = append(w.broken, "the member of Machine "+n.host+", which stays, was removed")
	}
}

// boot gives a Machine a host with a Node and a member of etcd.
func (w *world) boot(name string) *node {
	w.hosts++
	n := &node{host: name, number: w.hosts, created: w.now, since: w.now, providerID: "p://" + name}
	w.nodes["n-"+name] = n
	w.members["n-"+name] = uint64(w.hosts)
	w.infra[name] = w.infra[name].DeepCopy()
	_ = unstructured.SetNestedField(w.infra[name].Object, "p://"+name, "spec", "providerID")
	m := w.machines[name].DeepCopy()
	m.Spec.Bootstrap.DataSecretName = new(name)
	w.machines[name] = m
	w.report(name)
	w.elect()
	return n
}

// report makes the Machine controller find everything out about the host of a Machine.
func (w *world) report(name string) {
	m, n := w.machines[name].DeepCopy(), w.nodes["n-"+name]
	m.Status.NodeRef.Name, m.Spec.ProviderID = "n-"+name, "p://"+name
	m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: n.address()}}
	w.machines[name] = m
	n.providerID, n.hidden = "p://"+name, false
	w.start(name)
}

// start starts the member of etcd that kubeadm has added, and promotes it.
func (w *world) start(name string) {
	n := w.nodes["n-"+name]
	if _, is := w.members["n-"+name]; is && n.unnamed && !n.down && w.hasQuorum() {
		n.unnamed, n.learner = false, false
	}
}

// progress is what the Machine controller does with a Machine that is deleted: it waits for the hook, then it is gone with its host. Its
// Node object is left where it does not know it.
func (w *world) progress(name string) {
	m := w.machines[name]
	switch {
	case m.DeletionTimestamp.IsZero():
	case hasHook(m):
		m = m.DeepCopy()
		set(m, metav1.Condition{Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason})
		w.machines[name] = m
	default:
		before, others := w.hasQuorum(), len(w.machines) > 1
		w.remove(name)
		if _, is := w.members["n-"+name]; is && others && w.nodes["n-"+name].wasStarted() {
			w.broken = append(w.broken, "Machine "+name+" went with its member of etcd")
		}
		if before && !w.hasQuorum() && others {
			w.broken = append(w.broken, "Machine "+name+" went with the quorum")
		}
	}
}

// wasStarted: a member that never started is removed afterwards.
func (n *node) wasStarted() bool { return n == nil || !n.unnamed }

// remove ends the host of a Machine, and the Machine. The Node object goes with it where the Machine refers to it.
func (w *world) remove(name string) {
	m := w.machines[name]
	delete(w.machines, name)
	if n := w.nodes["n-"+name]; n != nil {
		n.gone, n.since = true, w.now
		if m.Status.NodeRef.Name == "n-"+name {
			delete(w.nodes, "n-"+name)
		}
	}
	w.elect()
}

// asks makes a health check ask for the replacement of a Machine.
func (w *world) asks(name string) {
	m := w.machines[name].DeepCopy()
	set(m, metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Reason: "NodeNotReady"})
	if c := condition.Set(m.Status.Conditions).Get(clusterv1.MachineOwnerRemediatedCondition); c == nil {
		set(m, metav1.Condition{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: "WaitingForRemediation"})
	}
	w.machines[name] = m
}

// pass decides once and carries out the plan; crash is how many actions are carried out before the controller dies, -1: all.
func (w *world) pass(crash int) reconciler.Plan {
	s := w.snapshot()
	p := decide(s)
	for i, do := range p.Actions {
		if i == crash {
			return p
		}
		w.apply(s, do)
	}
	r := report(s, p, reconciler.Outcome{Done: p.Actions})
	for _, e := range r.Events {
		if e.Type == corev1.EventTypeWarning {
			w.warnings = append(w.warnings, e.Message)
		}
	}
	if crash < 0 {
		w.plane = w.plane.DeepCopy()
		w.plane.Status = r.Status.(controlplanev1.KubeadmControlPlaneStatus)
	}
	return p
}

// settle lets the world go on without faults until nothing changes, and returns after how many rounds.
func (w *world) settle(most int) (int, bool) {
	quiet := 0
	for round := range most {
		before := len(w.log)
		w.now = w.now.Add(15 * time.Second)
		w.pass(-1)
		moved := false
		for _, name := range w.names() {
			m := w.machines[name]
			if m.DeletionTimestamp.IsZero() && (len(w.members) == 0 || w.hasQuorum()) && w.repair(name) {
				moved = true
			}
			if !m.DeletionTimestamp.IsZero() {
				w.progress(name)
				moved = true
			}
		}
		w.endForeign()
		if quiet++; moved || len(w.log) > before {
			quiet = 0
		}
		if quiet > 2 {
			return round, true
		}
	}
	return most, false
}

// repair boots a Machine, or reports what is not known of its host; false: there was nothing to do.
func (w *world) repair(name string) bool {
	n := w.nodes["n-"+name]
	if n == nil && !w.machines[name].Status.NodeRef.IsDefined() {
		w.boot(name)
		return true
	}
	if n == nil || w.machines[name].Status.NodeRef.Name == "n-"+name && !n.hidden && (!n.unnamed || n.down) && n.providerID == "p://"+name {
		return false
	}
	w.report(name)
	return true
}

// endForeign does what the condition EtcdClusterHealthy asks for: a person deletes the Node of a member without a Machine, one at a time, when
// the others are healthy. A Node that was deleted before that registers again. The host of the only Machine, which is never replaced, is started.
func (w *world) endForeign() {
	numbers := w.numbers
	members := w.snapshot().Etcd.Members
	w.numbers = numbers // names of Machines do not depend on it
	deleted := false
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		n := w.nodes[name]
		id, is := w.members[name]
		switch {
		case w.machines[n.host] != nil && n.down && w.staying() == 1:
			n.down = false
		case w.machines[n.host] != nil:
			n.hidden = false
		case n.gone:
		case !is:
			n.gone = true
		default:
			n.hidden = !deleted && members.AllowsRemoval(id)
			deleted = deleted || n.hidden
		}
	}
}

// actions of the log that change Machines or etcd.
func (w *world) actions() []string {
	var out []string
	for _, line := range w.log {
		if !strings.HasPrefix(line, "set conditions") {
			out = append(out, line)
		}
	}
	return out
}

// isWhole reports whether there are as many Machines as desired, all of them up to date and healthy.
func (w *world) isWhole() string {
	s := w.snapshot()
	switch {
	case len(s.Machines) != desired(s):
		return fmt.Sprintf("%d Machines, %d desired", len(s.Machines), desired(s))
	case len(s.outdated()) > 0:
		return fmt.Sprintf("outdated %v", s.outdated())
	case !s.isHealthy():
		return "not healthy"
	case len(w.members) != len(s.Machines):
		return fmt.Sprintf("%d members of %d Machines", len(w.members), len(s.Machines))
	}
	if _, ok := w.plane.Annotations[controlplanev1.RemediationInProgressAnnotation]; ok {
		return "a remediation is in progress"
	}
	return ""
}
