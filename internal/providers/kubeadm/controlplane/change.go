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
//	a member of etcd has neither Machine nor Node   remove it
//	a health check asks for a replacement           note it, delete the Machine
//	a Machine is updated in place                   continue to begin that, or wait for it to end
//	Machines are outdated                           create one, update an outdated one in place, or delete it
//	too few, too many                               create one, delete one
//	all Machines are up to date                     upgrade kube-proxy and CoreDNS
func decideChange(s Snapshot, c change, p *loop.Plan) {
	decideRecord(s, p)
	steps := []func(Snapshot, change, *loop.Plan) bool{recoverQuorum, leave, removeStrays, remediate, updateInPlace, scale, followUp}
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

// leave lets a Machine go that waits for the hook, one after the other. One whose member of etcd cannot be removed now is held, and nothing
// else waits for it: it may be that another Machine has to be replaced first.
func leave(s Snapshot, _ change, p *loop.Plan) bool {
	for _, m := range s.leaving() {
		if !s.isHeld(m) {
			leaveNow(s, m, p)
			return true
		}
		p.WaitFor(waitForEtcd, "Machine %s keeps its member of etcd: %s", m.Name, s.etcdMembers().Removal(m.Status.NodeRef.Name)).For(machineKind, m.Name).ForTime()
		p.RecheckIn(unhealthyInterval)
	}
	return false
}

// isHeld reports whether a Machine that is deleted waits for nothing but that its member of etcd may be removed.
func (s Snapshot) isHeld(m machines.Member) bool {
	node := m.Status.NodeRef.Name
	_, is := s.Workload.Etcd.Member(node)
	return hooks.IsReached(m.Machine) && s.managesEtcd() && is && s.etcdProblem() == "" && len(s.candidates()) > 0 && !s.etcdMembers().AllowsRemoval(node)
}

// leaveNow removes the hook of a Machine, after its member of etcd.
func leaveNow(s Snapshot, m machines.Member, p *loop.Plan) {
	others := hooks.Others(m.Machine)
	switch {
	case isWritten(m, *p):
		p.RecheckIn(soon)
	case !hooks.IsReached(m.Machine):
		p.RecheckIn(deletionRecheck)
	case len(others) > 0 && hooks.IsLast(m.Machine):
		p.WaitFor(waitForEtcd, "Waiting for the owners of the other pre-terminate hooks of Machine %s to remove the annotations %s", m.Name, strings.Join(others, ", ")).
			For(machineKind, m.Name).ToChange("metadata.annotations")
	case !s.managesEtcd(), !m.Status.NodeRef.IsDefined(), !s.isInitialized():
		p.Do(action.RemoveHook{Machine: m.Name, Why: "it has no member of etcd"})
	case len(s.candidates()) == 0:
		p.Do(action.RemoveHook{Machine: m.Name, Why: "no other Machine would be left to remove its member of etcd"})
	default:
		removeMemberOf(s, m, p)
	}
}

// leaving are the Machines that are being deleted and have the hook, in the order in which their deletion began.
func (s Snapshot) leaving() []machines.Member {
	var out []machines.Member
	for _, m := range s.Machines {
		if !m.DeletionTimestamp.IsZero() && hooks.Has(m.Machine) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b machines.Member) int { return a.DeletionTimestamp.Time.Compare(b.DeletionTimestamp.Time) })
	return out
}

// removeMemberOf moves the leader away from a Machine, removes its member, then its hook.
func removeMemberOf(s Snapshot, m machines.Member, p *loop.Plan) {
	node := m.Status.NodeRef.Name
	e := s.Workload.Etcd
	if problem := s.etcdProblem(); problem != "" {
		p.WaitFor(waitForEtcd, "Machine %s keeps its member of etcd until the others answer: %s", m.Name, problem).For(machineKind, m.Name).ForTime()
		p.RecheckIn(unhealthyInterval)
		return
	}
	member, is := e.Member(node)
	if is {
		if e.Leader() == node && e.Silent(node) == "" { // one that is not reached cannot hand over; it steps down when it is removed
			if to, ok := health.NextLeader(s.Workload.Etcd, s.Machines, node); ok {
				p.Do(action.MoveLeader{To: to.ID, Node: to.Name, From: node})
			}
		}
		p.Do(action.RemoveMember{ID: member.ID, Name: node, Why: "Machine " + m.Name + " is deleted"})
	}
	p.Do(action.RemoveHook{Machine: m.Name, Why: "its member of etcd is removed"})
}

// etcdProblem says why nothing is known of the members of etcd; empty: it is.
func (s Snapshot) etcdProblem() string {
	switch {
	case s.Workload.At.IsZero():
		return "the workload cluster was not read yet"
	case s.Workload.Problem != "":
		return s.Workload.Problem
	}
	return s.Workload.Etcd.Problem
}

// removeStrays removes members of etcd that have neither a Machine nor a Node. While a Machine is being created its member may be ahead
// of its Node.
func removeStrays(s Snapshot, _ change, p *loop.Plan) bool {
	if !s.managesEtcd() || s.etcdProblem() != "" || s.isProvisioning() {
		return false
	}
	nodes := map[string]bool{}
	for _, m := range s.Machines {
		nodes[m.Status.NodeRef.Name] = true
	}
	for _, member := range s.Workload.Etcd.Members {
		if member.Name != "" && (nodes[member.Name] || s.Workload.Nodes[member.Name] != nil) || !s.etcdMembers().AllowsRemoval(member.Name) {
			continue
		}
		p.Do(action.RemoveMember{ID: member.ID, Name: member.Name, Why: "it has neither a Machine nor a Node"})
		return true
	}
	return false
}

// isProvisioning reports whether a Machine has no Node yet.
func (s Snapshot) isProvisioning() bool {
	return len(s.Created) > 0 || slices.ContainsFunc(s.Machines, func(m machines.Member) bool { return !m.Status.NodeRef.IsDefined() && !m.Deleted })
}

// remediation is which unhealthy Machine is replaced now.
func (s Snapshot) remediation() remediation.Decision {
	in := remediation.Input{
		Now: s.Now, Spec: s.Plane.Spec.Remediation, Created: s.Created, Initialized: s.isInitialized(), Managed: s.managesEtcd(),
	}
	for _, m := range s.Machines {
		components, etcdHealthy := health.AreTrue(s.judged(m))
		in.Machines = append(in.Machines, remediation.Machine{Member: m, EtcdHealthy: etcdHealthy, ComponentsHealthy: components, Held: s.isHeld(m), Failed: s.Clones.NeverJoins(m.Machine)})
	}
	if in.Managed {
		in.Etcd, in.EtcdUnknown = s.etcdMembers(), s.etcdProblem()
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
