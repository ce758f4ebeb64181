package workload

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// running is a Machine whose components all run.
func running(changes ...func(*MachineState)) MachineState {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	m.Status.NodeRef.Name = "n"
	f := MachineState{OwnedMachine: machines.OwnedMachine{Machine: m}, Initialized: true, Managed: true}
	all := []etcd.Member{{ID: 1, Name: "n"}, {ID: 2, Name: "o"}}
	f.State = State{
		At: now, Initialized: true, Pods: map[string]*corev1.Pod{},
		Nodes: map[string]*corev1.Node{"n": {ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{controlPlaneLabel: ""}}}},
		Etcd: Etcd{Members: all, Statuses: map[string]EtcdStatus{
			"n": {Status: etcd.Status{ID: 1, ClusterID: 7, Leader: 2, Members: all}}, "o": {Status: etcd.Status{ID: 2, ClusterID: 7, Leader: 2, Members: all}},
		}},
	}
	for _, component := range []string{apiServerPod, controllerManagerPod, schedulerPod, etcdPod} {
		f.State.Pods[component+"-n"] = pod(component+"-n", corev1.PodRunning, corev1.ConditionTrue)
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func pod(name string, phase corev1.PodPhase, ready corev1.ConditionStatus, states ...corev1.ContainerState) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
	for _, s := range states {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "c", State: s})
	}
	return p
}

func scheduler(p *corev1.Pod) func(*MachineState) {
	return func(f *MachineState) { f.State.Pods["kube-scheduler-n"] = p }
}

func status(change func(*EtcdStatus)) func(*MachineState) {
	return func(f *MachineState) {
		s := f.State.Etcd.Statuses["n"]
		change(&s)
		f.State.Etcd.Statuses["n"] = s
	}
}

// Each condition of a Machine for what was read.
func TestMachine(t *testing.T) { // KC-13, KC-14, KC-33
	const member, schedulerPod, apiServerPod = "EtcdMemberHealthy", "SchedulerPodHealthy", "APIServerPodHealthy"
	expired := func(f *MachineState) { f.Expired = now.Add(-time.Hour) }
	crash := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	kept := func(f *MachineState) {
		f.Unchanged, f.State.Problem = true, "gone"
		f.Status.Conditions = []metav1.Condition{{Type: schedulerPod, Status: "True", Reason: "Running"}}
	}
	for name, tc := range map[string]struct {
		reason    string
		facts     MachineState
		condition string
		status    metav1.ConditionStatus
		want      string
	}{
		"running":           {"", running(), schedulerPod, "True", "Running"},
		"not initialized":   {"there is nothing to read", running(func(f *MachineState) { f.Initialized = false }), schedulerPod, "Unknown", "InspectionFailed"},
		"no Node":           {"", running(func(f *MachineState) { f.Status.NodeRef.Name = "" }), schedulerPod, "Unknown", "InspectionFailed"},
		"no Pod":            {"", running(func(f *MachineState) { delete(f.State.Pods, "kube-scheduler-n") }), schedulerPod, "False", "DoesNotExist"},
		"no Pod, deleting":  {"it goes with its Machine", running(func(f *MachineState) { delete(f.State.Pods, "kube-scheduler-n"); f.Deleted = true }), schedulerPod, "False", "Deleting"},
		"pending":           {"", running(scheduler(pod("p", corev1.PodPending, "False"))), schedulerPod, "False", "Provisioning"},
		"not ready":         {"", running(scheduler(pod("p", corev1.PodRunning, "False"))), schedulerPod, "False", "Provisioning"},
		"crashes":           {"", running(scheduler(pod("p", corev1.PodRunning, "False", crash))), schedulerPod, "False", "Failed"},
		"failed":            {"", running(scheduler(pod("p", corev1.PodFailed, "False"))), schedulerPod, "False", "Failed"},
		"unknown phase":     {"", running(scheduler(pod("p", corev1.PodUnknown, "False"))), schedulerPod, "Unknown", "InspectionFailed"},
		"kept":              {"what was read last stays for a while", running(kept), schedulerPod, "True", "Running"},
		"down":              {"then it is not known any more", running(kept, func(f *MachineState) { f.Unchanged, f.Down = false, true }), schedulerPod, "Unknown", "ConnectionDown"},
		"member":            {"", running(), member, "True", "Healthy"},
		"external etcd":     {"its members are no one's of these Machines", running(func(f *MachineState) { f.Managed = false }), member, "", ""},
		"no list":           {"", running(func(f *MachineState) { f.State.Etcd.Problem = "no leader" }), member, "Unknown", "InspectionFailed"},
		"no member":         {"", running(func(f *MachineState) { f.State.Etcd.Members = f.State.Etcd.Members[1:] }), member, "False", "NotHealthy"},
		"alarm":             {"a full disk", running(func(f *MachineState) { f.State.Etcd.Members[0].Alarms = []string{"NOSPACE"} }), member, "False", "NotHealthy"},
		"expired":           {"the Pod is ready all the same", running(expired), apiServerPod, "False", "Failed"},
		"expired, down":     {"it may be why", running(expired, func(f *MachineState) { f.Down, f.State.Problem = true, "gone" }), apiServerPod, "False", "Failed"},
		"expired, deleting": {"it is being replaced", running(expired, func(f *MachineState) { f.Deleted = true }), apiServerPod, "True", "Running"},
		"learner":           {"", running(func(f *MachineState) { f.State.Etcd.Members[0].Learner = true }), member, "False", "NotHealthy"},
		"silent":            {"", running(status(func(s *EtcdStatus) { s.Problem = "does not respond" })), member, "False", "NotHealthy"},
		"no leader":         {"", running(status(func(s *EtcdStatus) { s.Leader = 0 })), member, "False", "NotHealthy"},
		"errors":            {"", running(status(func(s *EtcdStatus) { s.Errors = []string{"x"} })), member, "False", "NotHealthy"},
		"another list":      {"it lags behind, or is split off", running(status(func(s *EtcdStatus) { s.Members = s.Members[:1] })), member, "False", "NotHealthy"},
		"lost":              {"its infrastructure says so, and the API does not respond", running(kept, func(f *MachineState) { f.Lost = "it does not run" }), member, "False", "NotHealthy"},
		"lost, read":        {"what it says itself counts", running(func(f *MachineState) { f.Lost = "it does not run" }), member, "True", "Healthy"},
		"label":             {"", running(), "NodeKubeadmLabelsAndTaintsSet", "True", "Set"},
		"no label":          {"", running(func(f *MachineState) { f.State.Nodes["n"].Labels = nil }), "NodeKubeadmLabelsAndTaintsSet", "False", "NotSet"},
		"Node gone":         {"", running(func(f *MachineState) { delete(f.State.Nodes, "n") }), "NodeKubeadmLabelsAndTaintsSet", "Unknown", "InspectionFailed"},
		"Node gone with it": {"", running(func(f *MachineState) { delete(f.State.Nodes, "n"); f.Deleted = true }), "NodeKubeadmLabelsAndTaintsSet", "False", "Deleting"},
	} {
		tc.facts.Etcd = MatchMembers(MatchInput{Now: now, State: tc.facts.State, Machines: machines.OwnedMachines{tc.facts.OwnedMachine}})
		set := condition.Set(MachineConditions().Evaluate(tc.facts, reconciler.EvaluateOptionsFor(tc.facts.Machine, now)))
		got := set.Get(tc.condition)
		if got == nil {
			got = &metav1.Condition{}
		}
		if got.Status != tc.status || got.Reason != tc.want {
			t.Errorf("%s: %s: %s %s %q", name, tc.reason, got.Status, got.Reason, got.Message)
		}
	}
}

// What a person has to do is said: of a full database, and of a certificate that expired.
func TestMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		facts           MachineState
		condition, want string
	}{
		"another alarm": {running(func(f *MachineState) { f.State.Etcd.Members[0].Alarms = []string{"CORRUPT"} }), "EtcdMemberHealthy", "Etcd reports the alarms CORRUPT"},
		"full": {running(func(f *MachineState) { f.State.Etcd.Members[0].Alarms = []string{"NOSPACE"} }), "EtcdMemberHealthy", "Etcd reports the alarms NOSPACE: the database has " +
			"reached its quota, and nothing can be written; delete objects that are not needed, compact etcd, defragment each member, then disarm the alarm"},
		"expired": {running(func(f *MachineState) { f.Expired = now }), "APIServerPodHealthy", "The certificate of the API server on Node n expired on 2026-01-02T03:04:05Z: replace " +
			"the Machine, or run `kubeadm certs renew all` on the node and restart its static Pods; spec.rollout.before.certificatesExpiryDays of the " +
			"KubeadmControlPlane replaces Machines in time"},
	} {
		tc.facts.Etcd = MatchMembers(MatchInput{Now: now, State: tc.facts.State, Machines: machines.OwnedMachines{tc.facts.OwnedMachine}})
		got := condition.Set(MachineConditions().Evaluate(tc.facts, reconciler.EvaluateOptionsFor(tc.facts.Machine, now))).Get(tc.condition)
		if got == nil || got.Message != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
}

// plane is a control plane of Machines of which the first are not healthy.
func plane(unhealthy, healthy int) ControlPlaneHealth {
	p := ControlPlaneHealth{Now: now, Managed: true, Initialized: true, Certificates: condition.True("Available")}
	for i := range unhealthy + healthy {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}}
		status := metav1.ConditionTrue
		if i < unhealthy {
			status = metav1.ConditionFalse
		}
		for _, c := range ConditionTypes(true) {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: c, Status: status, Reason: "R", LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))})
		}
		p.Machines = append(p.Machines, m)
		member := EtcdMember{ID: uint64(i + 1), Name: m.Name, Machine: m.Name, Class: memberOfMachine, Health: MemberHealthy}
		if i < unhealthy {
			member.Health = MemberUnhealthy
		}
		p.Etcd = append(p.Etcd, member)
	}
	return p
}

// Certificates, one healthy Machine and a quorum make a control plane available; what is missing beyond that is in the message.
func TestPlane(t *testing.T) { // KC-15, KC-16
	with := func(p ControlPlaneHealth, change func(*ControlPlaneHealth)) ControlPlaneHealth { change(&p); return p }
	for name, tc := range map[string]struct {
		p                           ControlPlaneHealth
		available, etcd, components metav1.ConditionStatus
		says                        bool
	}{
		"three":           {plane(0, 3), "True", "True", "True", false},
		"one lost":        {plane(1, 2), "True", "False", "False", true},
		"two lost":        {plane(2, 1), "False", "False", "False", true},
		"flake":           {with(plane(1, 2), func(p *ControlPlaneHealth) { p.Now = now.Add(-55 * time.Second) }), "True", "False", "False", false},
		"no Machines":     {plane(0, 0), "False", "Unknown", "Unknown", true},
		"not initialized": {with(plane(0, 1), func(p *ControlPlaneHealth) { p.Initialized = false }), "False", "Unknown", "Unknown", true},
		"no certificates": {with(plane(0, 1), func(p *ControlPlaneHealth) { p.Certificates = condition.False("NotAvailable", "gone") }), "False", "True", "True", true},
		"deleting":        {with(plane(0, 1), func(p *ControlPlaneHealth) { p.Deleting = true }), "False", "True", "True", true},
		"down":            {with(plane(0, 1), func(p *ControlPlaneHealth) { p.Down = true }), "Unknown", "Unknown", "Unknown", true},
		"hangs":           {with(plane(0, 3), func(p *ControlPlaneHealth) { p.EtcdProblem, p.Stale = "it does not respond", true }), "True", "True", "True", false},
		"hangs, two lost": {with(plane(2, 1), func(p *ControlPlaneHealth) { p.EtcdProblem, p.Stale = "it does not respond", true }), "Unknown", "False", "False", true},
		"no list of etcd": {with(plane(0, 3), func(p *ControlPlaneHealth) { p.EtcdProblem = "it has no leader" }), "Unknown", "True", "True", true},
		"external etcd":   {with(plane(0, 1), func(p *ControlPlaneHealth) { p.Managed, p.Etcd = false, nil }), "True", "", "True", false},
	} {
		available, etcd, components := tc.p.Available(), tc.p.EtcdCluster(), tc.p.Components()
		if available.Status != tc.available || etcd.Status != tc.etcd || components.Status != tc.components || (available.Message != "") != tc.says {
			t.Errorf("%s: Available %v, EtcdClusterHealthy %v, ControlPlaneComponentsHealthy %v", name, available, etcd, components)
		}
	}
	unlisted := with(plane(0, 3), func(p *ControlPlaneHealth) { p.EtcdProblem = "it has no leader" })
	if got := unlisted.Available().Message; got != "* The etcd members are unknown: it has no leader" {
		t.Error(got)
	}
	if got := UnhealthyReason(machines.List(plane(1, 0).Machines)[0], true); got != "has no Node yet" {
		t.Error(got)
	}
}

// Every condition that the control plane sets gates a Machine's readiness; those of etcd only where it runs on the Machines.
func TestGates(t *testing.T) { // KC-17
	if managed, external := len(ReadinessGates(true)), len(ReadinessGates(false)); managed != 6 || external != 4 {
		t.Errorf("%d gates with managed etcd, %d without", managed, external)
	}
}
