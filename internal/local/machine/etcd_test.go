package machine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

const recoveryID = "20261125T131500Z"

// orderOf is an order for a step.
func orderOf(step recovery.Step) recovery.EtcdOrder {
	o := recovery.EtcdOrder{ID: recoveryID, Step: step}
	if step == recovery.Stage {
		o.Snapshot = recovery.Snapshot{Policy: "nightly", Name: "c1-20261125T120000Z"}
	}
	return o
}

// ordered is a machine of a control plane that runs, and whose control plane orders a step.
func ordered(step recovery.Step, change ...func(*snapshot)) snapshot {
	s := snapshot{
		Name: "m", Object: &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Name: "cp", Annotations: map[string]string{
			controlplanev1.EtcdOrderAnnotation: orderOf(step).String()}}},
		Machine:     &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}},
		HostMachine: backend.Machine{State: backend.Running}, Capabilities: backend.Capabilities{ReachesEtcd: true},
	}
	s.Object.Status.Initialization.Provisioned = new(true)
	for _, c := range change {
		c(&s)
	}
	return s
}

// An order is followed once, on a machine of a control plane alone, and answered in any case.
func TestOrders(t *testing.T) { // KC-19
	reports := func(r recovery.Report) string {
		r.ID = recoveryID
		return "[report the result of the etcd order: " + r.String() + "]"
	}
	etcd := func(e etcdResult) func(*snapshot) { return func(s *snapshot) { s.Etcd = &e } }
	tests := map[string]struct {
		s        snapshot
		ask, act string
	}{
		"to survey":   {ordered(recovery.Survey), "[the etcd member, for Survey]", "[]"},
		"surveyed":    {ordered(recovery.Survey, etcd(etcdResult{Member: recovery.MemberState{Revision: 3}})), "[]", reports(recovery.Report{Step: recovery.Survey, Member: &recovery.MemberState{Revision: 3}})},
		"silent":      {ordered(recovery.Survey, etcd(etcdResult{Problem: "It does not answer"})), "[]", reports(recovery.Report{Step: recovery.Survey, Problem: "It does not answer"})},
		"unreachable": {ordered(recovery.Survey, etcd(etcdResult{Unreachable: true})), "[]", "[]"},
		"to rebuild":  {ordered(recovery.Rebuild, etcd(etcdResult{Phase: backend.NotStarted})), "[]", "[rebuild etcd from the member in machine m: its control plane requests it (recovery " + recoveryID + ")]"},
		"rebuilding":  {ordered(recovery.Rebuild, etcd(etcdResult{Phase: backend.InProgress})), "[]", "[]"},
		"rebuilt":     {ordered(recovery.Rebuild, etcd(etcdResult{Phase: backend.Succeeded})), "[]", reports(recovery.Report{Step: recovery.Rebuild})},
		"it failed":   {ordered(recovery.Rebuild, etcd(etcdResult{Phase: backend.Failed, Problem: "no data"})), "[]", reports(recovery.Report{Step: recovery.Rebuild, Problem: "no data"})},
		"to stage":    {ordered(recovery.Stage, etcd(etcdResult{Phase: backend.NotStarted})), "[]", "[copy snapshot c1-20261125T120000Z to machine m: its control plane requests it (recovery " + recoveryID + ")]"},
		"staging":     {ordered(recovery.Stage, etcd(etcdResult{Phase: backend.InProgress})), "[]", "[]"},
		"staged":      {ordered(recovery.Stage, etcd(etcdResult{Phase: backend.Succeeded})), "[]", reports(recovery.Report{Step: recovery.Stage})},
		"not staged":  {ordered(recovery.Stage, etcd(etcdResult{Problem: "damaged"})), "[]", reports(recovery.Report{Step: recovery.Stage, Problem: "damaged"})},
		"to restore":  {ordered(recovery.Restore, etcd(etcdResult{Phase: backend.NotStarted})), "[]", "[restore etcd from the snapshot in machine m: its control plane requests it (recovery " + recoveryID + ")]"},
		"restored":    {ordered(recovery.Restore, etcd(etcdResult{Phase: backend.Succeeded})), "[]", reports(recovery.Report{Step: recovery.Restore})},
		"answered": {ordered(recovery.Rebuild, func(s *snapshot) {
			s.Object.Annotations[controlplanev1.EtcdReportAnnotation] = recovery.Report{ID: recoveryID, Step: recovery.Rebuild}.String()
		}), "[]", "[]"},
		"answered another": {ordered(recovery.Rebuild, func(s *snapshot) {
			s.Object.Annotations[controlplanev1.EtcdReportAnnotation] = recovery.Report{ID: recoveryID, Step: recovery.Survey}.String()
		}), "[the etcd member, for Rebuild]", "[]"},
		"a worker":        {ordered(recovery.Rebuild, func(s *snapshot) { s.Machine.Labels = nil }), "[]", "[]"},
		"nonsense":        {ordered("Format"), "[]", "[]"},
		"it does not run": {ordered(recovery.Survey, func(s *snapshot) { s.HostMachine.State = backend.Stopped }), "[]", reports(recovery.Report{Step: recovery.Survey, Problem: "The machine m does not run"})},
		"another backend": {ordered(recovery.Survey, func(s *snapshot) { s.Capabilities.ReachesEtcd = false }), "[]", reports(recovery.Report{Step: recovery.Survey, Problem: "Etcd in machines of this backend cannot be reached"})},
		"it is not a node": {ordered(recovery.Survey, func(s *snapshot) {
			s.Object.Status.Initialization.Provisioned = nil
			s.Capabilities.Scripted, s.Progress = true, &backend.Progress{Phase: backend.InProgress}
		}), "[]", "[set the provider ID to slipway:///m: it identifies the machine]"},
		"it is gone, and is in memory": {ordered(recovery.Survey, func(s *snapshot) { s.HostMachine.State, s.Capabilities.Volatile = backend.Absent, true }), "[]", "[create and start machine m: it was lost with its workload cluster's memory]"},
	}
	for name, tt := range tests {
		p := decide(tt.s)
		if got := fmt.Sprint(p.Reads); got != tt.ask {
			t.Errorf("%s: asks %s, want %s", name, got, tt.ask)
		}
		if got := fmt.Sprint(p.Actions); got != tt.act {
			t.Errorf("%s: %s, want %s", name, got, tt.act)
		}
	}
}

// members answer with an error, or a phase.
type members struct {
	backend.EtcdRecovery
	err    error
	phase  backend.Phase
	staged bool
}

func (m members) Staged(context.Context, backend.Ref, recovery.EtcdOrder) (bool, error) {
	return m.staged, m.err
}

func (m members) Survey(context.Context, backend.Ref) (recovery.MemberState, error) {
	return recovery.MemberState{Index: 4}, m.err
}

func (m members) RebuildProgress(context.Context, backend.Ref, recovery.EtcdOrder) (backend.Progress, error) {
	return backend.Progress{Phase: m.phase, Log: "no data"}, m.err
}

func TestAnswerEtcd(t *testing.T) {
	survey, rebuild, stage := orderOf(recovery.Survey), orderOf(recovery.Rebuild), orderOf(recovery.Stage)
	c := &controller{stager: &stager{Jobs: jobs.NewRunner(t.Context(), time.Now, jobs.SnapshotLimits())}}
	tests := map[string]struct {
		members members
		order   recovery.EtcdOrder
		want    etcdResult
	}{
		"surveyed":    {members{}, survey, etcdResult{Member: recovery.MemberState{Index: 4}}},
		"it fails":    {members{phase: backend.Failed}, rebuild, etcdResult{Phase: backend.Failed, Problem: "no data"}},
		"it runs":     {members{phase: backend.InProgress}, rebuild, etcdResult{Phase: backend.InProgress}},
		"refused":     {members{err: fault.New(fault.Invalid, "X", "It is no node")}, rebuild, etcdResult{Problem: "It is no node"}},
		"unreachable": {members{err: fault.New(fault.Unreachable, "X", "Docker")}, rebuild, etcdResult{Unreachable: true}},
		"not staged":  {members{}, stage, etcdResult{Phase: backend.NotStarted}},
		"staged":      {members{staged: true}, stage, etcdResult{Phase: backend.Succeeded}},
		"it stopped":  {members{err: fault.New(fault.Conflict, "X", "It stopped")}, rebuild, etcdResult{Unreachable: true}},
	}
	for name, tt := range tests {
		s, err := c.readEtcdResult(t.Context(), tt.members, ordered(tt.order.Step), tt.order)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := *s.Etcd
		if tt.want.Problem == "" || tt.members.err != nil {
			got.Member = tt.want.Member
		}
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
	if _, err := c.readEtcdResult(t.Context(), members{err: errors.New("a bug")}, ordered(recovery.Survey), survey); err == nil {
		t.Error("an error that is no fault is lost")
	}
	got, err := (&controller{}).readEtcdResult(t.Context(), members{}, ordered(recovery.Stage), stage)
	if err != nil || got.Etcd.Problem != "This manager has no snapshot stores" {
		t.Errorf("a manager without stores: %+v, %v", got.Etcd, err)
	}
}
