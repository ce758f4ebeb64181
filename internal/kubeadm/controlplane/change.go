package controlplane

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// decideChange plans at most one change of Machines or etcd members. [decideMachines] calls it in each reconciliation,
// after the changes that can be made in place. The first of these steps that returns true ends the decision. The order
// must stay, because a later step relies on the earlier ones having nothing to do. A step that returns false may still
// have planned a wait or a survey, for example for a Machine whose member cannot be removed yet:
//
//	a recovery of the quorum was requested            see recovery_decide.go
//	a deleted Machine waits for its hook              transfer leadership, remove the member, remove the hook
//	an etcd member was left behind                    remove it
//	a health check requests a replacement             record it, delete the Machine
//	a Machine is being updated in place               continue to start the update, or wait for its end
//	Machines are outdated                             create one, update an outdated one in place, or delete it
//	too few or too many Machines                      create one, delete one
//	all Machines are up to date                       upgrade kube-proxy and CoreDNS
func decideChange(s snapshot, p *reconciler.Plan) {
	clearRemediationRecord(s, p)
	steps := []func(snapshot, *reconciler.Plan) bool{
		recoverQuorum, releaseDeleted, removeOrphanedMembers, remediate, continueUpdate, scale, upgradeAddons,
	}
	for _, step := range steps {
		if step(s, p) {
			return
		}
	}
}

// changesMachines reports whether a plan creates or deletes a Machine, or changes etcd. [decide] requests a fresh read
// of the workload cluster before such a plan, and decides again.
func changesMachines(p reconciler.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a reconciler.Action) bool {
		switch a.(type) {
		case createMachine, machines.DeleteMachines, removeMember, moveLeader, removeHook, acceptRecovery, inPlaceUpdate:
			return true
		}
		return false
	})
}

// withWrites returns the snapshot for the decisions that follow the given writes. [decideMachines] calls it before
// [decideChange], because the snapshot does not show these writes yet.
func (s snapshot) withWrites(actions []reconciler.Action) snapshot {
	s.Written = map[string]bool{}
	for _, a := range actions {
		switch a := a.(type) {
		case setConditions:
			s.Written[a.Machine] = true
		case machines.SyncMachine:
			s.Written[a.Machine] = true
		}
	}
	return s
}

// isPending reports whether this plan writes the Machine, or an earlier write is not in the cache yet. Such a Machine
// must be observed again before it is deleted or its hook is removed.
func (s snapshot) isPending(m machines.OwnedMachine) bool { return m.Stale || s.Written[m.Name] }

// etcdProblem returns the reason why the etcd members are unknown, or the empty string if they are known. The steps
// that remove a member, and the conditions, call it.
func (s snapshot) etcdProblem() string {
	switch {
	case s.Workload.At.IsZero():
		return "the workload cluster has not been read yet"
	case s.Workload.Problem != "":
		return s.Workload.Problem
	}
	return s.Workload.Etcd.Problem
}

// remediate records the replacement of the selected Machine, and then deletes the Machine.
func remediate(s snapshot, p *reconciler.Plan) bool {
	d := s.Remediation
	if d.Delete == "" {
		return false
	}
	if s.isPending(s.Machines.Named(d.Delete)) {
		return true
	}
	if noted, ok := remediationInProgress(s.ControlPlane); !ok || noted != d.Record {
		p.Do(recordRemediation{Record: d.Record})
	}
	p.Do(machines.DeleteMachines{Names: []string{d.Delete}, Why: d.Why})
	return true
}

// clearRemediationRecord removes the record of a remediation if the replacement exists or is not needed.
func clearRemediationRecord(s snapshot, p *reconciler.Plan) {
	record, ok := remediationInProgress(s.ControlPlane)
	if !ok {
		return
	}
	replaced := slices.ContainsFunc(s.Machines, func(m machines.OwnedMachine) bool {
		of, is := remediationFor(m.Machine)
		return is && of.Machine == record.Machine && of.RetryCount == record.RetryCount
	})
	gone := s.Machines.Named(record.Machine).Machine == nil
	enough := len(s.candidates())+len(s.Created) >= desired(s)
	if replaced || gone && enough {
		p.Do(clearRemediation{Machine: record.Machine})
	}
}

// describeReasons returns the reason why Machines are replaced, for an action. [scale] calls it.
func (s snapshot) describeReasons(outdated []string) string {
	why := s.named(outdated[0]).Reasons[0].Message
	return fmt.Sprintf("replace %s: %s", machines.NamesText(outdated), strings.ToLower(why[:1])+why[1:])
}
