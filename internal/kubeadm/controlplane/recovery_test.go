package controlplane

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kcpv1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

const id = "20261125T131500Z"

var now = time.Date(2026, 11, 25, 13, 15, 30, 0, time.UTC)

// machine is one of a control plane; its Node is n-NAME.
func machine(name string, change ...func(*memberMachine)) memberMachine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{kcpHook: ""}}}
	m.Status.NodeRef.Name = "n-" + name
	m.Status.Initialization.InfrastructureProvisioned = new(true)
	out := memberMachine{OwnedMachine: machines.OwnedMachine{Machine: m}, HasInfra: true}
	for _, c := range change {
		c(&out)
	}
	out.EtcdName = m.Status.NodeRef.Name
	return out
}

const kcpHook = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup"

// stopped: the infrastructure says that the machine does not run.
func stopped(m *memberMachine) {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: clusterv1.InfrastructureReadyCondition, Status: "False", Message: "* It does not run"})
}

func deleting(m *memberMachine) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func excluded(m *memberMachine) {
	m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation], m.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation] = "", ""
}

func noHook(m *memberMachine) { delete(m.Annotations, kcpHook) }

// fenced: the infrastructure machine is deleted, and the Node cannot be.
func fenced(m *memberMachine) {
	excluded(m)
	deleting(m)
	noHook(m)
	m.HasInfra = false
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: "True", Reason: clusterv1.MachineDeletingDeletingNodeReason})
}

func ordered(step recovery.Step) func(*memberMachine) {
	return func(m *memberMachine) { m.Order = &recovery.EtcdOrder{ID: id, Step: step} }
}

func reported(step recovery.Step, problem string, member *recovery.MemberState) func(*memberMachine) {
	return func(m *memberMachine) {
		m.Report = &recovery.Report{ID: id, Step: step, Problem: problem, Member: member}
	}
}

var surveyed = reported(recovery.Survey, "", &recovery.MemberState{Revision: 7, Index: 9})

func accepted(change ...func(*recovery.RecoveryRequest)) *recovery.RecoveryRequest {
	r := &recovery.RecoveryRequest{ID: id, Survivor: "a", Accepted: true, Lost: []recovery.LostMember{{Machine: "b", Node: "n-b"}, {Machine: "c", Node: "n-c"}}}
	for _, c := range change {
		c(r)
	}
	return r
}

// members of etcd, of which some are healthy.
func members(healthy string, names ...string) workload.EtcdMembers {
	var out workload.EtcdMembers
	for _, name := range names {
		health := workload.MemberUnhealthy
		if strings.Contains(healthy, name) {
			health = workload.MemberHealthy
		}
		out = append(out, workload.EtcdMember{Name: "n-" + name, Health: health})
	}
	return out
}

const unread = "the workload cluster does not respond"

// input is a control plane of three with these Machines, whose API does not respond.
func input(r *recovery.RecoveryRequest, ms ...memberMachine) snapshot {
	return snapshot{
		Now: now, Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}, ControlPlane: &kcpv1.KubeadmControlPlane{}, Members: ms,
		Recovery: recoveryState{Request: r}, Workload: workload.State{At: now, Initialized: true, Etcd: workload.Etcd{Problem: unread}},
	}
}

// listed is the same control plane with these members of etcd.
func listed(s snapshot, members workload.EtcdMembers) snapshot {
	s.Etcd.Members = members
	return s
}

// readable is the same control plane with an API that responds, and with or without a leader of etcd.
func readable(s snapshot, leader bool, members workload.EtcdMembers) snapshot {
	s.Workload.Etcd = workload.Etcd{}
	if leader {
		s.Workload.Etcd = workload.Etcd{Members: []etcd.Member{{ID: 1, Name: "n-a"}}, Statuses: map[string]workload.EtcdStatus{"n-a": {Status: etcd.Status{Leader: 1}}}}
	}
	return listed(s, members)
}

func external(s snapshot) snapshot {
	s.ControlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://e"}
	return s
}

// The quorum is lost where too few members can be left, and the message says who is, and what to do.
func TestLoss(t *testing.T) { // KC-16
	tests := map[string]struct {
		in     snapshot
		want   string
		reason string
	}{
		"two of three": {input(nil, machine("a"), machine("b", stopped), machine("c", stopped)),
			"Etcd has lost its quorum: 1 of 3 members left, 2 needed. Machine b: It does not run; Machine c: It does not run. Start their machines again if possible; " +
				"otherwise `slipway recover controlplane c1` rebuilds etcd from a remaining member", "one cannot agree with itself"},
		"one of three":  {input(nil, machine("a"), machine("b"), machine("c", stopped)), "", "the others have a quorum"},
		"three of five": {input(nil, machine("a"), machine("b"), machine("c", stopped), machine("d", stopped), machine("e", fenced)), "2 of 5 members left, 3 needed", "deleted ones are lost, too"},
		"all":           {input(nil, machine("a", stopped)), "0 of 1 members left, 1 needed. Machine a: It does not run. Start one of the machines again if possible; otherwise the data of etcd is only in snapshots", "nothing to rebuild from"},
		"a member without a Machine": {listed(input(nil, machine("a")), members("", "a", "b", "c")),
			"1 of 3 members left", "Machines may have been deleted by hand"},
		"just initialized":  {input(nil, machine("a", func(m *memberMachine) { m.Status.NodeRef.Name = "" })), "", "its Node is not known yet, and neither is its member"},
		"the network alone": {input(nil, machine("a"), machine("b"), machine("c")), "", "nothing says that a machine does not run"},
		"not provisioned":   {input(nil, machine("a"), machine("b", stopped, func(m *memberMachine) { m.Status.Initialization.InfrastructureProvisioned = nil })), "", "it has never had a member"},
		"a survey of yesterday": {func() snapshot {
			in := input(nil, machine("a", surveyed), machine("b", reported(recovery.Survey, "no etcd", nil)), machine("c", reported(recovery.Survey, "no etcd", nil)))
			in.Now = time.Date(2026, 11, 26, 13, 15, 0, 0, time.UTC)
			return in
		}(), "", "what it found may not be so any more"},
		"external":               {external(input(nil, machine("a", stopped))), "", "its members are elsewhere"},
		"a survey found it":      {input(nil, machine("a", surveyed), machine("b", reported(recovery.Survey, "no etcd", nil)), machine("c", reported(recovery.Survey, "no etcd", nil))), "Machine b: no etcd", "what runs may have no etcd"},
		"a survey found it, too": {input(nil, machine("a"), machine("b", stopped, reported(recovery.Survey, "no etcd", nil)), machine("c", stopped)), "Machine b: It does not run; Machine c: It", "the infrastructure says what to do"},
		"a survey found leader":  {input(nil, machine("a", reported(recovery.Survey, "", &recovery.MemberState{Leader: true})), machine("b", stopped), machine("c", stopped)), "", "a leader is a quorum"},
		"it had a leader before": {input(nil, machine("a", func(m *memberMachine) {
			m.Report = &recovery.Report{ID: "20261125T131400Z", Step: recovery.Survey, Member: &recovery.MemberState{Leader: true}}
		}), machine("b", stopped), machine("c", stopped)), "1 of 3 members left", "a report of a minute ago"},
		"without a leader": {readable(input(nil, machine("a"), machine("b", func(m *memberMachine) { m.Unreachable = "it does not respond" }),
			machine("c", func(m *memberMachine) { m.Unreachable = "it does not respond" })), false, members("", "a", "b", "c")), "Machine b: it does not respond", "members were read one by one"},
		"initialized, without a Node": {input(nil, machine("a", func(m *memberMachine) { m.Status.NodeRef.Name = "" })), "", "no member is known yet, so that none is lost"},
		"an election":                 {readable(input(nil, machine("a"), machine("b"), machine("c")), false, members("", "a", "b", "c")), "", "all answer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := tt.in.quorumLoss()
			if got.IsLost != (tt.want != "") || !strings.Contains(got.Text, tt.want) {
				t.Errorf("%+v, want %q: %s", got, tt.want, tt.reason)
			}
			if len(got.Why) != len(got.Lost) {
				t.Errorf("%v are lost because of %v", got.Lost, got.Why)
			}
		})
	}
}

// What comes next of a recovery, and what the condition says meanwhile.
func TestRecoveringDecide(t *testing.T) { // KC-19
	lost := []memberMachine{machine("b", stopped), machine("c", stopped)}
	with := func(a memberMachine, others ...memberMachine) []memberMachine {
		return append([]memberMachine{a}, others...)
	}
	wants := &recovery.RecoveryRequest{ID: id, Survivor: "a"}
	force := func(r *recovery.RecoveryRequest) { r.Force = true }
	manual := func(r *recovery.RecoveryRequest) { r.Manual = true }
	request := func(change ...func(*recovery.RecoveryRequest)) *recovery.RecoveryRequest {
		r := *wants
		for _, c := range change {
			c(&r)
		}
		return &r
	}
	read := func(in snapshot, healthy string, names ...string) snapshot {
		return readable(in, healthy != "", members(healthy, names...))
	}
	rebuilt := machine("a", ordered(recovery.Rebuild), reported(recovery.Rebuild, "", nil))
	tests := map[string]struct {
		in      snapshot
		actions string // sentences, each on a line
		verdict string // status, reason and the begin of the message
		busy    bool
	}{
		"nothing is asked for": {in: input(nil, machine("a"))},
		"the API does not respond": {in: func() snapshot {
			in := input(nil, machine("a"), machine("b", func(m *memberMachine) { m.Order = &recovery.EtcdOrder{ID: "20261125T131200Z", Step: recovery.Survey} }),
				machine("c", func(m *memberMachine) {
					m.Order = &recovery.EtcdOrder{ID: "20261125T131300Z", Step: recovery.Survey}
					m.Report = &recovery.Report{ID: "20261125T131300Z", Step: recovery.Survey}
				}))
			in.Workload.Problem = unread
			return in
		}(), actions: "order etcd step Survey from the infrastructure of Machine a: recovery 20261125T131500Z\norder etcd step Survey from the infrastructure of Machine c: recovery 20261125T131500Z"},
		"it cannot be read": {in: func() snapshot {
			in := input(nil)
			in.Recovery.Invalid = fault.As(fault.New(fault.Invalid, "RecoveryRequestInvalid", "Cannot be read"))
			return in
		}(), verdict: "False RecoveryRequestInvalid Cannot be read"},
		"external etcd": {in: external(input(wants)), verdict: "False RecoveryImpossible"},
		"a survey": {in: input(&recovery.RecoveryRequest{ID: id}, machine("a"), machine("b", ordered(recovery.Survey)), machine("c", deleting)),
			actions: "order etcd step Survey from the infrastructure of Machine a: recovery " + id, busy: false},
		"a Machine of others":   {in: input(request(func(r *recovery.RecoveryRequest) { r.Survivor = "x" }), lost...), verdict: "False SurvivorUnknown Machine x does not belong"},
		"a Machine that leaves": {in: input(wants, with(machine("a", deleting), lost...)...), verdict: "False SurvivorUnknown Machine a is being deleted"},
		"a quorum":              {in: read(input(wants, with(machine("a", surveyed), lost...)...), "ab", "a", "b", "c"), verdict: "False RecoveryNotNeeded"},
		"the survivor knows a leader": {in: input(wants, with(machine("a", reported(recovery.Survey, "", &recovery.MemberState{Leader: true})), lost...)...),
			verdict: "False RecoveryNotNeeded"},
		"a quorum, and force": {in: read(input(request(force), with(machine("a", surveyed), lost...)...), "ab", "a", "b", "c"), verdict: "False RecoveryNotNeeded"},
		"not surveyed": {in: input(wants, with(machine("a"), lost...)...), busy: true, verdict: "False Recovering Waiting for the infrastructure of Machine a to report",
			actions: "order etcd step Survey from the infrastructure of Machine a: recovery " + id},
		"nothing is left there": {in: input(wants, with(machine("a", ordered(recovery.Survey), reported(recovery.Survey, "no data", nil)), lost...)...), verdict: "False SurvivorUnusable"},
		"others may have one":   {in: input(wants, machine("a", surveyed), machine("b"), machine("c", stopped)), verdict: "False RecoveryUnclear"},
		"insists": {in: input(request(force), machine("a", surveyed), machine("b"), machine("c", stopped)), busy: true, verdict: "False Recovering Etcd is going to be rebuilt",
			actions: "start recovery " + id + ": etcd is rebuilt from the member of Machine a"},
		"sure": {in: input(wants, with(machine("a", surveyed), lost...)...), busy: true, verdict: "False Recovering",
			actions: "start recovery " + id + ": etcd is rebuilt from the member of Machine a"},
		"by hand": {in: input(request(manual), with(machine("a"), lost...)...), busy: true, verdict: "False Recovering",
			actions: "start recovery " + id + ": etcd is rebuilt from the member of Machine a"},
		"the others go": {in: input(accepted(), machine("a", surveyed), machine("b", stopped), machine("c", stopped, excluded)), busy: true,
			verdict: "False Recovering Waiting for the infrastructure of Machines b, c to be deleted",
			actions: "exclude Machine b from draining: the recovery discards its etcd member\ndelete Machine c: the recovery discards its etcd member"},
		"their hooks": {in: input(accepted(), machine("a", surveyed), machine("b", excluded, deleting), machine("c", excluded, deleting, noHook)), busy: true,
			verdict: "False Recovering", actions: "remove the hook of Machine b: the recovery discards its etcd member"},
		"a Machine that came later": {in: input(accepted(), machine("a", surveyed), machine("b", fenced), machine("d")), busy: true, verdict: "False Recovering Waiting for the infrastructure of Machine a to rebuild",
			actions: "order etcd step Rebuild from the infrastructure of Machine a: recovery " + id},
		"one is left": {in: input(accepted(), machine("a", surveyed, ordered(recovery.Rebuild)), machine("b", fenced), machine("c", excluded, deleting, noHook)), busy: true,
			verdict: "False Recovering Waiting for the infrastructure of Machine c to be deleted"},
		"one is left, and force": {in: input(accepted(force), machine("a", surveyed), machine("b", fenced), machine("c", excluded, deleting, noHook)), busy: true, verdict: "False Recovering",
			actions: "order etcd step Rebuild from the infrastructure of Machine a: recovery " + id},
		"ordered":                        {in: input(accepted(), machine("a", surveyed, ordered(recovery.Rebuild)), machine("b", fenced)), busy: true, verdict: "False Recovering Waiting for the infrastructure"},
		"in hand":                        {in: input(accepted(manual), machine("a")), busy: true, verdict: "False Recovering Waiting for a manual rebuild of etcd on Machine a"},
		"it failed":                      {in: input(accepted(), machine("a", ordered(recovery.Rebuild), reported(recovery.Rebuild, "etcd\ndoes not stop", nil))), busy: true, verdict: "False RebuildFailed Etcd cannot be rebuilt on Machine a: etcd does not stop"},
		"it is gone":                     {in: input(accepted()), busy: true, verdict: "False SurvivorMissing"},
		"rebuilt":                        {in: input(accepted(), rebuilt), busy: true, verdict: "False Recovering Etcd is rebuilt from the member of Machine a: waiting"},
		"it answers, others are members": {in: read(input(accepted(), rebuilt), "abc", "a", "b", "c"), busy: true, verdict: "False Recovering Etcd is rebuilt from the member of Machine a: waiting"},
		"it answers before it said so":   {in: read(input(accepted(), machine("a", ordered(recovery.Rebuild))), "a", "a"), busy: true, verdict: "False Recovering Waiting for the infrastructure"},
		"Nodes are left": {in: func() snapshot {
			in := read(input(accepted(), rebuilt), "a", "a")
			in.Workload.Nodes = map[string]*corev1.Node{"n-a": nil, "n-c": nil}
			return in
		}(), busy: true, verdict: "False Recovering Deleting Node n-c of a discarded Machine", actions: "delete Node n-c: the recovery discarded its Machine"},
		"done":         {in: read(input(accepted(), rebuilt), "a", "a"), verdict: "True Recovered Etcd was rebuilt from the member of Machine a (recovery " + id + ")"},
		"done by hand": {in: read(input(accepted(manual), machine("a")), "a", "a"), verdict: "True Recovered"},
		"done and said": {in: func() snapshot {
			in := read(input(accepted(), rebuilt), "a", "a")
			in.ControlPlane.Status.Conditions = []metav1.Condition{{Type: controlplanev1.RecoveredCondition, Status: "True", Reason: "Recovered", Message: "recovery " + id}}
			return in
		}(), verdict: "True Recovered", actions: "end recovery " + id + ": etcd is rebuilt"},
		"afterwards": {in: func() snapshot {
			in := input(nil)
			in.ControlPlane.Status.Conditions = []metav1.Condition{{Type: controlplanev1.RecoveredCondition, Status: "True", Reason: "Recovered", Message: "Once"}}
			return in
		}(), verdict: "True Recovered Once"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var p reconciler.Plan
			tt.in = tt.in.withRecoveryStage()
			busy := recoverQuorum(tt.in, &p)
			var lines []string
			for _, a := range p.Actions {
				lines = append(lines, fmt.Sprint(a))
			}
			if diff := cmp.Diff(tt.actions, strings.Join(lines, "\n")); diff != "" {
				t.Error(diff)
			}
			v := tt.in.recoveredCondition()
			text := strings.TrimSpace(fmt.Sprintf("%s %s %s", v.Status, v.Reason, v.Message))
			if !strings.HasPrefix(text, tt.verdict) || tt.verdict == "" && text != "" {
				t.Errorf("condition %q, want %q", text, tt.verdict)
			}
			if busy != tt.busy {
				t.Errorf("busy %v, want %v", busy, tt.busy)
			}
		})
	}
}

// of is the snapshot of the tests, older is a Machine that was there before it.
var of = recovery.Snapshot{Policy: "nightly", Name: "c1-20261125T120000Z"}

func older(m *memberMachine) { m.CreationTimestamp = metav1.Time{Time: now.Add(-24 * time.Hour)} }

// A snapshot is restored with a quorum or without, on a Machine that was there before it, and only after it was staged something is given up.
func TestRestore(t *testing.T) { // KC-19
	restores := func(r *recovery.RecoveryRequest) { r.Snapshot = of }
	wants := func(change ...func(*recovery.RecoveryRequest)) *recovery.RecoveryRequest {
		r := &recovery.RecoveryRequest{ID: id, Survivor: "a", Snapshot: of}
		for _, c := range change {
			c(r)
		}
		return r
	}
	quorum := func(in snapshot) snapshot {
		return readable(in, true, members("abc", "a", "b", "c"))
	}
	alone := func(in snapshot) snapshot {
		return readable(in, true, members("a", "a"))
	}
	staged, restored := reported(recovery.Stage, "", nil), machine("a", older, ordered(recovery.Restore), reported(recovery.Restore, "", nil))
	stage, restore := "order etcd step Stage from the infrastructure of Machine a: recovery "+id, "order etcd step Restore from the infrastructure of Machine a: recovery "+id
	tests := map[string]struct {
		in               snapshot
		actions, verdict string
		read             bool
	}{
		"not staged":                   {in: input(wants(), machine("a", older), machine("b", stopped)), actions: stage, verdict: "False Recovering Waiting for the infrastructure of Machine a to prepare a data directory from snapshot " + of.Name},
		"surveyed is not staged":       {in: input(wants(), machine("a", older, surveyed), machine("b", stopped)), actions: stage, verdict: "False Recovering"},
		"with a quorum":                {in: quorum(input(wants(), machine("a", older), machine("b"), machine("c"))), actions: stage, verdict: "False Recovering"},
		"it cannot be":                 {in: input(wants(), machine("a", older, reported(recovery.Stage, "it is\ndamaged", nil)), machine("b")), verdict: "False SnapshotUnusable Snapshot " + of.Name + " cannot be restored on Machine a, and nothing was changed: it is damaged", read: true},
		"it cannot be, and force":      {in: input(wants(func(r *recovery.RecoveryRequest) { r.Force = true }), machine("a", older, reported(recovery.Stage, "damaged", nil)), machine("b")), verdict: "False SnapshotUnusable", read: true},
		"a newer Machine":              {in: input(wants(), machine("a", func(m *memberMachine) { m.CreationTimestamp = metav1.Time{Time: now} }), machine("b")), verdict: "False SurvivorNewer", read: true},
		"by hand":                      {in: input(wants(func(r *recovery.RecoveryRequest) { r.Manual = true }), machine("a", older)), verdict: "False RecoveryImpossible", read: true},
		"an unknown Machine":           {in: input(wants(func(r *recovery.RecoveryRequest) { r.Survivor = "x" }), machine("a", older)), verdict: "False SurvivorUnknown", read: true},
		"staged, others have a quorum": {in: quorum(input(wants(), machine("a", older, staged), machine("b"), machine("c"))), actions: "start recovery " + id + ": etcd is restored from snapshot " + of.Name + " on Machine a", verdict: "False Recovering Etcd is going to be restored from snapshot", read: true},
		"the others go":                {in: quorum(input(accepted(restores), machine("a", older, staged), machine("b"), machine("c", fenced))), actions: "exclude Machine b from draining: the recovery discards its etcd member", verdict: "False Recovering Waiting for the infrastructure of Machine b to be deleted"},
		"they are gone":                {in: input(accepted(restores), machine("a", older, staged), machine("b", fenced)), actions: restore, verdict: "False Recovering Waiting for the infrastructure of Machine a to restore etcd from snapshot " + of.Name},
		"the only one":                 {in: alone(input(accepted(restores, func(r *recovery.RecoveryRequest) { r.Lost = nil }), machine("a", older, staged))), actions: restore, verdict: "False Recovering Waiting for the infrastructure"},
		"it failed":                    {in: input(accepted(restores), machine("a", older, ordered(recovery.Restore), reported(recovery.Restore, "etcd does not stop", nil))), verdict: "False RebuildFailed", read: true},
		"restored":                     {in: input(accepted(restores), restored), verdict: "False Recovering Etcd is rebuilt from snapshot " + of.Name + " on Machine a: waiting", read: true},
		"done":                         {in: alone(input(accepted(restores), restored)), verdict: "True Recovered Etcd was rebuilt from snapshot " + of.Name + " on Machine a (recovery " + id + ")", read: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var p reconciler.Plan
			tt.in = tt.in.withRecoveryStage()
			recoverQuorum(tt.in, &p)
			var lines []string
			for _, a := range p.Actions {
				lines = append(lines, fmt.Sprint(a))
			}
			if diff := cmp.Diff(tt.actions, strings.Join(lines, "\n")); diff != "" {
				t.Error(diff)
			}
			v := tt.in.recoveredCondition()
			if text := fmt.Sprintf("%s %s %s", v.Status, v.Reason, v.Message); !strings.HasPrefix(text, tt.verdict) {
				t.Errorf("condition %q, want %q", text, tt.verdict)
			}
			if got := tt.in.needsRead(); got != tt.read {
				t.Errorf("needs a read: %v", got)
			}
		})
	}
}

// The survivor is never rebuilt before nothing of the others can come back, and those that are given up are the others: in any order
// of what becomes of their Machines.
func TestFence(t *testing.T) { // KC-19
	states := map[string][]func(*memberMachine){
		"runs": {}, "stopped": {stopped}, "excluded": {excluded}, "deleting": {excluded, deleting}, "no hook": {excluded, deleting, noHook},
		"its infrastructure is gone, and it does not say so": {excluded, deleting, noHook, func(m *memberMachine) { m.HasInfra = false }},
	}
	for name, state := range states {
		for _, r := range []*recovery.RecoveryRequest{accepted(), accepted(func(r *recovery.RecoveryRequest) { r.Manual = true })} {
			in := input(r, machine("a", surveyed), machine("b", fenced), machine("c", state...)).withRecoveryStage()
			var p reconciler.Plan
			recoverQuorum(in, &p)
			for _, a := range p.Actions {
				if strings.Contains(fmt.Sprint(a), "Rebuild") || strings.Contains(fmt.Sprint(a), "Machine a") {
					t.Errorf("%s: %s", name, a)
				}
			}
			if v := in.recoveredCondition(); !strings.Contains(v.Message, "Machine c to be deleted") {
				t.Errorf("%s: %s", name, v.Message)
			}
		}
	}
	in := input(&recovery.RecoveryRequest{ID: id, Survivor: "a"}, machine("a"), machine("b", stopped))
	in = listed(in, members("", "a", "b", "c"))
	want := []recovery.LostMember{{Machine: "b", Node: "n-b"}, {Node: "n-c"}}
	if diff := cmp.Diff(want, in.acceptedRequest().Lost); diff != "" {
		t.Error(diff)
	}
	if !hasHook(machine("a").Machine) {
		t.Error("the Machines of these tests have no hook")
	}
}

// While a recovery orders, deletes and rebuilds, the API that does not respond is not asked; a request that is left does not end that it is.
func TestNeedsRead(t *testing.T) { // KC-19
	tests := map[string]struct {
		in   snapshot
		want bool
	}{
		"nothing is asked for": {input(nil, machine("a")), true},
		"a survey":             {input(&recovery.RecoveryRequest{ID: id}, machine("a")), false},
		"a survey that is over, or that no one can make": {input(&recovery.RecoveryRequest{ID: id}, machine("a", ordered(recovery.Survey)), machine("b", func(m *memberMachine) { m.HasInfra = false })), true},
		"to be surveyed": {input(&recovery.RecoveryRequest{ID: id, Survivor: "a"}, machine("a"), machine("b", stopped)), false},
		"to be accepted": {input(&recovery.RecoveryRequest{ID: id, Survivor: "a"}, machine("a", surveyed), machine("b", stopped)), true},
		"the others go":  {input(accepted(), machine("a"), machine("b")), false},
		"it is rebuilt":  {input(accepted(), machine("a")), false},
		"by hand":        {input(accepted(func(r *recovery.RecoveryRequest) { r.Manual = true }), machine("a")), true},
		"it was":         {input(accepted(), machine("a", reported(recovery.Rebuild, "", nil))), true},
	}
	for name, tt := range tests {
		if got := tt.in.withRecoveryStage().needsRead(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// down is a control plane whose API does not respond, without a request.
func down(ms ...memberMachine) snapshot {
	in := input(nil, ms...)
	in.Workload.Problem = unread
	return in
}

// A request that waits for a person is looked at seldom: it may stay for as long as it likes.
func TestRefusedIsLookedAtSeldom(t *testing.T) {
	for name, tc := range map[string]struct {
		in       snapshot
		want     time.Duration
		underWay bool
	}{
		"refused":                    {input(&recovery.RecoveryRequest{ID: id, Survivor: "x"}, machine("a")), refusedInterval, false},
		"failed":                     {input(accepted(), machine("a", ordered(recovery.Rebuild), reported(recovery.Rebuild, "no room", nil)), machine("b", fenced), machine("c", fenced)), refusedInterval, false},
		"surveying":                  {input(&recovery.RecoveryRequest{ID: id}, machine("a")), recoveryInterval, true},
		"none":                       {input(nil, machine("a")), 0, false},
		"down, about to be surveyed": {down(machine("a")), recoveryInterval, false},
		"down, surveyed now":         {down(machine("a", func(m *memberMachine) { m.Order = &recovery.EtcdOrder{ID: down().surveyID(), Step: recovery.Survey} })), recoveryInterval, false},
		"down, answered": {down(machine("a", func(m *memberMachine) {
			m.Order = &recovery.EtcdOrder{ID: down().surveyID(), Step: recovery.Survey}
			m.Report = &recovery.Report{ID: m.Order.ID, Step: recovery.Survey, Member: &recovery.MemberState{}}
		})), 0, false},
		"down, a provider that never answers": {down(machine("a", func(m *memberMachine) { m.Order = &recovery.EtcdOrder{ID: "20261125T101400Z", Step: recovery.Survey} })), 0, false},
	} {
		var p reconciler.Plan
		s := tc.in.withRecoveryStage()
		recoverQuorum(s, &p)
		if p.Recheck != tc.want || s.isRecovering() != tc.underWay {
			t.Errorf("%s: again in %s, under way %v", name, p.Recheck, s.isRecovering())
		}
	}
}
