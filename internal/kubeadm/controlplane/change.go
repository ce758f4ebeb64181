package controlplane

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// changeInput is the input, besides the snapshot, of the steps that change Machines.
type changeInput struct {
	// complete is true if all certificates exist.
	complete    bool
	remediation remediationDecision
}

// decideChange plans at most one change of Machines or etcd members. Only the first of these steps that has an action
// or a wait is executed:
//
//	a recovery of the quorum was requested            see recovery_decide.go
//	a deleted Machine waits for its hook              transfer leadership, remove the member, remove the hook
//	an etcd member was left behind                    remove it
//	a health check requests a replacement             record it, delete the Machine
//	a Machine is being updated in place               continue to start the update, or wait for its end
//	Machines are outdated                             create one, update an outdated one in place, or delete it
//	too few or too many Machines                      create one, delete one
//	all Machines are up to date                       upgrade kube-proxy and CoreDNS
func decideChange(s snapshot, c changeInput, p *reconciler.Plan) {
	clearRemediationRecord(s, p)
	steps := []func(snapshot, changeInput, *reconciler.Plan) bool{recoverQuorum, releaseDeletedMachine, removeOrphans, remediate, updateInPlace, scale, upgradeAddons}
	for _, step := range steps {
		if step(s, c, p) {
			return
		}
	}
}

// changesMachines reports whether a plan creates or deletes a Machine, or changes etcd.
func changesMachines(p reconciler.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a reconciler.Action) bool {
		switch a.(type) {
		case createMachine, machines.DeleteMachines, removeMember, moveLeader, removeHook, acceptRecovery, inPlaceUpdate:
			return true
		}
		return false
	})
}

// isWritten reports whether this plan writes the Machine, or an earlier write is not in the cache yet. Such a Machine
// must be observed again before it is deleted or its hook is removed.
func isWritten(m machines.OwnedMachine, p reconciler.Plan) bool {
	return m.Stale || slices.ContainsFunc(p.Actions, func(a reconciler.Action) bool {
		switch a := a.(type) {
		case setConditions:
			return a.Machine == m.Name
		case machines.SyncMachine:
			return a.Machine == m.Name
		}
		return false
	})
}

// updateInPlace continues to start an in-place update, or waits for its end.
func updateInPlace(s snapshot, _ changeInput, p *reconciler.Plan) bool {
	return s.updateInput().continueUpdate(func(m machines.OwnedMachine) bool { return isWritten(m, *p) }, p)
}

// updateInput returns the input of decisions about in-place updates.
func (s snapshot) updateInput() updateInput {
	in := updateInput{
		ControlPlane: s.ControlPlane, State: s.machinesState(), Template: s.Infra, Configs: s.Configs, Reasons: s.Reasons, Enabled: s.Settings.InPlaceUpdates,
		Desired: desired(s), Checks: s.InPlace,
	}
	for _, c := range s.candidates() {
		if !c.Outdated {
			in.UpToDate++
		}
	}
	return in
}

// releaseDeletedMachine removes the etcd members and hooks of Machines that are being deleted.
func releaseDeletedMachine(s snapshot, _ changeInput, p *reconciler.Plan) bool {
	return s.hookInput(p).releaseDeleted(p)
}

// removeOrphans removes etcd members that were left behind.
func removeOrphans(s snapshot, _ changeInput, p *reconciler.Plan) bool {
	return len(s.Created) == 0 && s.hookInput(p).removeOrphanedMembers(p)
}

// hookInput returns the input of decisions about the deletion of Machines.
func (s snapshot) hookInput(p *reconciler.Plan) hookInput {
	return hookInput{
		Machines: s.Machines, Etcd: s.Etcd, Problem: s.etcdProblem(), Leader: s.Workload.Etcd.Leader(), Managed: s.managesEtcd(), Initialized: s.isInitialized(),
		IsWritten: func(m machines.OwnedMachine) bool { return isWritten(m, *p) },
	}
}

// etcdProblem returns the reason why the etcd members are unknown, or the empty string if they are known.
func (s snapshot) etcdProblem() string {
	switch {
	case s.Workload.At.IsZero():
		return "the workload cluster was not read yet"
	case s.Workload.Problem != "":
		return s.Workload.Problem
	}
	return s.Workload.Etcd.Problem
}

// remediation selects the unhealthy Machine to replace now.
func (s snapshot) remediation() remediationDecision {
	in := remediationInput{
		Now: s.Now, Spec: s.ControlPlane.Spec.Remediation, Created: s.Created, Initialized: s.isInitialized(), Managed: s.managesEtcd(),
	}
	for _, m := range s.Machines {
		components, etcdHealthy := workload.ComponentsHealthy(s.machineWithConditions(m))
		in.Machines = append(in.Machines, remediationMachine{
			OwnedMachine: m, EtcdHealthy: etcdHealthy, ComponentsHealthy: components, Held: s.isHeld(m), Failed: s.Clones.NeverJoins(m.Machine), Obstacle: s.Etcd.Obstacle(m.Name),
		})
	}
	if in.Managed {
		in.EtcdUnknown = s.etcdProblem()
	}
	if record, ok := remediationInProgress(s.ControlPlane); ok {
		in.InProgress = &record
	}
	return planRemediation(in)
}

// remediate records the replacement of the selected Machine, and then deletes the Machine.
func remediate(s snapshot, c changeInput, p *reconciler.Plan) bool {
	d := c.remediation
	if d.Delete == "" {
		return false
	}
	if isWritten(s.Machines.Named(d.Delete), *p) {
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

// describeReasons returns the reason why Machines are replaced, for an action.
func (s snapshot) describeReasons(outdated []string) string {
	m := s.Machines.Named(outdated[0])
	why := s.reasons(m.Machine)
	return fmt.Sprintf("replace %s: %s", machines.NamesText(outdated), strings.ToLower(why[0].Message[:1])+why[0].Message[1:])
}
