package controlplane

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/action"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/health"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/hooks"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/remediation"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/update"
)

// change is what the steps that change the Machines are decided by, besides the snapshot.
type change struct {
	// complete: all certificates are there.
	complete    bool
	remediation remediation.Decision
}

// decideChange does one thing that changes which Machines or members of etcd there are. The first of these that has something to do, or to
// wait for, is the only one:
//
//	a recovery of the quorum was asked for          see package recovering
//	a Machine that is deleted waits for the hook    move the leader, remove its member, remove the hook
//	a member of etcd was left behind                remove it
//	a health check asks for a replacement           note it, delete the Machine
//	a Machine is updated in place                   continue to begin that, or wait for it to end
//	Machines are outdated                           create one, update an outdated one in place, or delete it
//	too few, too many                               create one, delete one
//	all Machines are up to date                     upgrade kube-proxy and CoreDNS
func decideChange(s Snapshot, c change, p *loop.Plan) {
	decideRecord(s, p)
	steps := []func(Snapshot, change, *loop.Plan) bool{recoverQuorum, leave, removeOrphans, remediate, updateInPlace, scale, followUp}
	for _, step := range steps {
		if step(s, c, p) {
			return
		}
	}
}

// changesMachines reports whether a plan creates or deletes a Machine, or changes etcd.
func changesMachines(p loop.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a loop.Action) bool {
		switch a.(type) {
		case action.CreateMachine, machines.Delete, action.RemoveMember, action.MoveLeader, action.RemoveHook, action.AcceptRecovery, update.Update:
			return true
		}
		return false
	})
}

// isWritten reports whether a Machine is written in this plan, or was and the cache does not show it yet: it cannot be deleted or lose its
// hook before that is read again.
func isWritten(m machines.Member, p loop.Plan) bool {
	return m.Stale || slices.ContainsFunc(p.Actions, func(a loop.Action) bool {
		switch a := a.(type) {
		case action.SetConditions:
			return a.Machine == m.Name
		case machines.SyncMachine:
			return a.Machine == m.Name
		}
		return false
	})
}

// updateInPlace continues an update that was begun, or waits for it to end.
func updateInPlace(s Snapshot, _ change, p *loop.Plan) bool {
	return s.updates().Ongoing(func(m machines.Member) bool { return isWritten(m, *p) }, p)
}

// updates are what is decided about updates in place by.
func (s Snapshot) updates() update.Input {
	in := update.Input{
		Plane: s.Plane, State: s.State(), Template: s.Infra, Configs: s.Configs, Reasons: s.Reasons, Enabled: s.Settings.InPlaceUpdates,
		Desired: desired(s), Answers: s.InPlace,
	}
	for _, c := range s.candidates() {
		if !c.Outdated {
			in.UpToDate++
		}
	}
	return in
}

// leave lets Machines go that wait for the hook.
func leave(s Snapshot, _ change, p *loop.Plan) bool { return s.hooks(p).Leave(p) }

// removeOrphans removes members of etcd that were left behind.
func removeOrphans(s Snapshot, _ change, p *loop.Plan) bool {
	return len(s.Created) == 0 && s.hooks(p).RemoveOrphans(p)
}

// hooks are what the deletion of Machines is decided by.
func (s Snapshot) hooks(p *loop.Plan) hooks.Input {
	return hooks.Input{
		Machines: s.Machines, Etcd: s.Etcd, Problem: s.etcdProblem(), Leader: s.Workload.Etcd.Leader(), Managed: s.managesEtcd(), Initialized: s.isInitialized(),
		IsWritten: func(m machines.Member) bool { return isWritten(m, *p) },
	}
}

// etcdProblem is why nothing is known of the members of etcd; empty: they are known.
func (s Snapshot) etcdProblem() string {
	switch {
	case s.Workload.At.IsZero():
		return "the workload cluster was not read yet"
	case s.Workload.Problem != "":
		return s.Workload.Problem
	}
	return s.Workload.Etcd.Problem
}

// remediation is which unhealthy Machine is replaced now.
func (s Snapshot) remediation() remediation.Decision {
	in := remediation.Input{
		Now: s.Now, Spec: s.Plane.Spec.Remediation, Created: s.Created, Initialized: s.isInitialized(), Managed: s.managesEtcd(),
	}
	for _, m := range s.Machines {
		components, etcdHealthy := health.AreTrue(s.judged(m))
		in.Machines = append(in.Machines, remediation.Machine{
			Member: m, EtcdHealthy: etcdHealthy, ComponentsHealthy: components, Held: s.isHeld(m), Failed: s.Clones.NeverJoins(m.Machine), Obstacle: s.Etcd.Obstacle(m.Name),
		})
	}
	if in.Managed {
		in.EtcdUnknown = s.etcdProblem()
	}
	if record, ok := remediation.InProgress(s.Plane); ok {
		in.InProgress = &record
	}
	return remediation.Decide(in)
}

// remediate deletes the Machine that is replaced, once that is noted.
func remediate(s Snapshot, c change, p *loop.Plan) bool {
	d := c.remediation
	if d.Delete == "" {
		return false
	}
	if isWritten(s.Machines.Named(d.Delete), *p) {
		return true
	}
	if noted, ok := remediation.InProgress(s.Plane); !ok || noted != d.Record {
		p.Do(action.NoteRemediation{Record: d.Record})
	}
	p.Do(machines.Delete{Names: []string{d.Delete}, Why: d.Why})
	return true
}

// decideRecord forgets a remediation whose replacement exists, or that needs none.
func decideRecord(s Snapshot, p *loop.Plan) {
	record, ok := remediation.InProgress(s.Plane)
	if !ok {
		return
	}
	replaced := slices.ContainsFunc(s.Machines, func(m machines.Member) bool {
		of, is := remediation.For(m.Machine)
		return is && of.Machine == record.Machine && of.RetryCount == record.RetryCount
	})
	gone := s.Machines.Named(record.Machine).Machine == nil
	enough := len(s.candidates())+len(s.Created) >= desired(s)
	if replaced || gone && enough {
		p.Do(action.ForgetRemediation{Machine: record.Machine})
	}
}

// describeReasons says why Machines are replaced, for an action.
func (s Snapshot) describeReasons(outdated []string) string {
	m := s.Machines.Named(outdated[0])
	why := s.reasons(m.Machine)
	return fmt.Sprintf("replace %s: %s", machines.NamesText(outdated), strings.ToLower(why[0].Message[:1])+why[0].Message[1:])
}
