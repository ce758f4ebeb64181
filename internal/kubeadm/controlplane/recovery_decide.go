package controlplane

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

const (
	// reasonRecovering is the reason of the condition, and of waits, during a recovery.
	reasonRecovering = "Recovering"
	// reasonRecovered is the reason of the condition after a recovery.
	reasonRecovered = "Recovered"
)

// recoveryStage is a stage of a recovery.
type recoveryStage int

const (
	stageNone recoveryStage = iota
	stageSurveying
	stageRefused
	stageChecking
	stageAccepting
	stageFencing
	stageRebuilding
	stageFailed
	stageSettling
	stageCleaning
	stageDone
)

// recoveryProgress is the stage, with a reason and a message about the wait or the refusal.
type recoveryProgress struct {
	stage        recoveryStage
	reason, text string
}

// decide plans the next step of a recovery, and reports whether all other steps of the control plane are blocked.
func (in recoveryInput) decide(p *reconciler.Plan) bool {
	at := in.progress()
	if at.stage == stageNone {
		p.Do(in.surveys()...)
		if in.isSurveyed() {
			p.RecheckIn(recoveryInterval)
		}
		return false
	}
	if at.text != "" {
		wait := p.WaitFor(at.reason, "%s", at.text).For("Cluster", in.Cluster)
		if at.stage == stageRefused || at.stage == stageFailed {
			wait.UntilUserActs()
		} else {
			wait.ForTime()
		}
	}
	if at.stage == stageRefused || at.stage == stageFailed {
		p.RecheckIn(refusedInterval)
	} else {
		p.RecheckIn(recoveryInterval)
	}
	switch at.stage {
	case stageSurveying:
		p.Do(in.orders(in.order(recovery.Survey), in.remainingMachines()...)...)
	case stageChecking:
		p.Do(in.orders(in.checkOrder(), in.survivor())...)
	case stageAccepting:
		p.Do(acceptRecovery{Request: in.accepted()})
	case stageFencing:
		p.Do(in.fence()...)
	case stageRebuilding:
		p.Do(in.fence()...)
		if !in.Request.Manual {
			p.Do(in.orders(in.rebuildOrder(), in.survivor())...)
		}
	case stageCleaning:
		for _, node := range in.discardedNodes() {
			p.Do(deleteNode{Node: node, Why: "its Machine was given up with its member of etcd"})
		}
	case stageDone:
		if in.isReported() {
			p.Do(finishRecovery{ID: in.Request.ID, Machine: in.Request.Survivor})
		}
	}
	return at.stage > stageRefused && at.stage < stageDone
}

// isUnderWay reports whether a survey or recovery is in progress, so that its progress is polled at a short interval.
func (in recoveryInput) isUnderWay() bool {
	at := in.progress().stage
	return at > stageNone && at != stageRefused && at != stageFailed
}

// needsRead reports whether the next step depends on the state of the workload cluster. If not, reading it is
// skipped, because it would only delay the recovery until the read times out.
func (in recoveryInput) needsRead() bool {
	switch in.progress().stage {
	case stageSurveying:
		return len(in.orders(in.order(recovery.Survey), in.remainingMachines()...)) == 0
	case stageChecking:
		return len(in.orders(in.checkOrder(), in.survivor())) == 0
	case stageFencing:
		return false
	case stageRebuilding:
		return in.Request.Manual
	}
	return true
}

// progress returns the stage of the recovery according to the table in the package documentation.
func (in recoveryInput) progress() recoveryProgress {
	switch {
	case in.Problem != "":
		return recoveryProgress{stageRefused, in.Reason, in.Problem}
	case in.Request == nil:
		return recoveryProgress{}
	case !in.Managed:
		return recoveryProgress{stageRefused, "RecoveryImpossible", "Etcd of this control plane is external: recover it where it runs"}
	case in.Request.Survivor == "":
		return recoveryProgress{stage: stageSurveying}
	case !in.Request.Accepted:
		return in.evaluateRequest()
	}
	survivor, waiting := in.survivor(), in.unfenced()
	switch {
	case len(in.lostNodesAmong(in.memberNames())) == 0 && in.ReadError == "" && in.Members.HasQuorum() && in.isRebuilt(survivor):
		return in.finalProgress()
	case len(waiting) > 0 && !in.Request.Force:
		return recoveryProgress{stageFencing, reasonRecovering, fmt.Sprintf("Waiting for the machines of %s to be deleted before etcd is rebuilt: "+
			"they must not come back as a cluster of their own", machines.NamesText(waiting))}
	case survivor.Machine == nil:
		return recoveryProgress{stageFailed, "SurvivorMissing", "Machine " + in.Request.Survivor + ", from which etcd was to be rebuilt, does not exist any more: restore a snapshot"}
	case in.Request.Manual:
		return recoveryProgress{stageRebuilding, reasonRecovering, fmt.Sprintf("Waiting for etcd to be rebuilt by hand on Machine %s: `slipway recover controlplane %s --manual` prints the commands",
			survivor.Name, in.Cluster)}
	case !survivor.Report.IsFor(in.rebuildOrder()):
		return recoveryProgress{stageRebuilding, reasonRecovering, in.rebuildOrRestore(fmt.Sprintf("Waiting for the infrastructure of Machine %s to rebuild etcd from its member", survivor.Name),
			fmt.Sprintf("Waiting for the infrastructure of Machine %s to restore etcd from snapshot %s", survivor.Name, in.Request.Snapshot.Name))}
	case survivor.Report.Problem != "":
		return recoveryProgress{stageFailed, "RebuildFailed", fmt.Sprintf("Etcd could not be rebuilt on Machine %s: %s", survivor.Name, oneLine(survivor.Report.Problem))}
	}
	return recoveryProgress{stageSettling, reasonRecovering, fmt.Sprintf("Etcd is rebuilt from %s, waiting for its API server to answer", in.origin())}
}

// finalProgress returns the final stages of a recovery, once etcd has quorum without the lost members.
func (in recoveryInput) finalProgress() recoveryProgress {
	if nodes := in.discardedNodes(); len(nodes) > 0 {
		return recoveryProgress{stageCleaning, reasonRecovering, fmt.Sprintf("Deleting %s of lost Machines", nodesText(nodes))}
	}
	return recoveryProgress{stage: stageDone}
}

func nodesText(names []string) string {
	if len(names) == 1 {
		return "Node " + names[0]
	}
	return "Nodes " + strings.Join(names, ", ")
}

// isRebuilt reports whether the survivor's etcd was rebuilt. For a manual rebuild, or if the survivor no longer
// exists, no report is expected and it returns true.
func (in recoveryInput) isRebuilt(survivor recoveryMachine) bool {
	return in.Request.Manual || survivor.Machine == nil || survivor.Report.IsFor(in.rebuildOrder()) && survivor.Report.Problem == ""
}

// evaluateRequest evaluates a request that has not been accepted yet.
func (in recoveryInput) evaluateRequest() recoveryProgress {
	survivor := in.survivor()
	loss := in.quorumLoss()
	name := in.Request.Survivor
	switch {
	case survivor.Machine == nil:
		return recoveryProgress{stageRefused, "SurvivorUnknown", fmt.Sprintf("Machine %s is not one of this control plane: name one that is", name)}
	case survivor.isDeleted() || survivor.Status.NodeRef.Name == "":
		return recoveryProgress{stageRefused, "SurvivorUnknown", fmt.Sprintf("Machine %s is being deleted, or has no Node: name another one", name)}
	case in.Request.Restores():
		return in.evaluateRestore(survivor)
	case in.hasQuorum():
		return recoveryProgress{stageRefused, "RecoveryNotNeeded", "Etcd has a quorum: nothing has to be rebuilt, and a health check, or annotation " +
			"cluster.x-k8s.io/remediate-machine, replaces Machines that are lost"}
	case !in.Request.Manual && !survivor.Report.IsFor(in.checkOrder()):
		return recoveryProgress{stageChecking, reasonRecovering, fmt.Sprintf("Waiting for the infrastructure of Machine %s to say what its member of etcd has; where its provider cannot, "+
			"use `slipway recover controlplane %s --manual`", name, in.Cluster)}
	case !in.Request.Manual && survivor.Report.Problem != "" && !in.Request.Force:
		return recoveryProgress{stageRefused, "SurvivorUnusable", fmt.Sprintf("The member of etcd of Machine %s cannot be used: %s", name, oneLine(survivor.Report.Problem))}
	case !loss.IsLost && !in.Request.Force:
		return recoveryProgress{stageRefused, "RecoveryUnclear", fmt.Sprintf("Not enough members of etcd are known to be lost: those of %s may have a quorum. Find out why the API does not answer, "+
			"or use `slipway recover controlplane %s --force` when you know that they are lost", machines.NamesText(in.names(in.remainingMachines())), in.Cluster)}
	}
	return recoveryProgress{stageAccepting, reasonRecovering, fmt.Sprintf("Etcd is going to be rebuilt from the member of Machine %s", name)}
}

// evaluateRestore evaluates a request to restore a snapshot. It does not require a lost quorum, because reverting to a
// snapshot is the user's choice. No member is discarded before the data of the snapshot is prepared next to the data
// in use.
func (in recoveryInput) evaluateRestore(survivor recoveryMachine) recoveryProgress {
	name, snapshot := survivor.Name, in.Request.Snapshot
	switch {
	case in.Request.Manual:
		return recoveryProgress{stageRefused, "RecoveryImpossible", "A snapshot is not restored by hand: leave out manual"}
	case !survivor.CreationTimestamp.Time.Before(snapshot.Time()):
		return recoveryProgress{stageRefused, "SurvivorNewer", fmt.Sprintf("Machine %s is newer than snapshot %s, which does not have its Node: name an older Machine, or use a newer snapshot", name, snapshot.Name)}
	case !survivor.Report.IsFor(in.checkOrder()):
		return recoveryProgress{stageChecking, reasonRecovering, fmt.Sprintf("Waiting for the infrastructure of Machine %s to bring snapshot %s to it, and to make data of it beside that in use", name, snapshot.Name)}
	case survivor.Report.Problem != "":
		return recoveryProgress{stageRefused, "SnapshotUnusable", fmt.Sprintf("Snapshot %s cannot be restored on Machine %s, and nothing was changed: %s", snapshot.Name, name, oneLine(survivor.Report.Problem))}
	}
	return recoveryProgress{stageAccepting, reasonRecovering, fmt.Sprintf("Etcd is going to be restored from snapshot %s on Machine %s", snapshot.Name, name)}
}

// hasQuorum reports whether a member knows a leader.
func (in recoveryInput) hasQuorum() bool {
	return in.ReadError == "" && in.HasLeader || slices.ContainsFunc(in.Machines, func(m recoveryMachine) bool {
		return m.surveyed() != nil && m.surveyed().Leader && m.Report.ID == in.Request.ID
	})
}

// accepted returns the accepted request, with the Machines and members to discard.
func (in recoveryInput) accepted() recovery.RecoveryRequest {
	out := *in.Request
	out.Accepted, out.Lost = true, nil
	nodes := map[string]bool{in.survivor().member(): true}
	for _, m := range in.Machines {
		if m.Name != out.Survivor {
			out.Lost = append(out.Lost, recovery.LostMember{Machine: m.Name, Node: m.member()})
			nodes[m.member()] = true
		}
	}
	for _, name := range in.memberNames() {
		if name != "" && !nodes[name] {
			out.Lost = append(out.Lost, recovery.LostMember{Node: name})
		}
	}
	return out
}

// fence deletes the discarded Machines. They are not drained, because the API does not respond.
func (in recoveryInput) fence() []reconciler.Action {
	var out []reconciler.Action
	for _, m := range in.Machines {
		switch {
		case !in.Request.Discards(m.Name) || m.PendingWrite:
		case !m.isExcluded():
			out = append(out, excludeFromDrain{Machine: m.Name})
		case !m.isDeleted():
			out = append(out, machines.DeleteMachines{Names: []string{m.Name}, Why: "its member of etcd is given up"})
		case m.hasHook():
			out = append(out, removeHook{Machine: m.Name, Why: "its member of etcd is given up"})
		}
	}
	return out
}

// unfenced returns the discarded Machines whose infrastructure may still come back.
func (in recoveryInput) unfenced() []string {
	var out []string
	for _, m := range in.Machines {
		if in.Request.Discards(m.Name) && !m.isFenced() {
			out = append(out, m.Name)
		}
	}
	return out
}

// order returns the order for a step of the request.
func (in recoveryInput) order(step recovery.Step) recovery.EtcdOrder {
	return recovery.EtcdOrder{ID: in.Request.ID, Step: step}
}

// checkOrder returns the order that checks the survivor before any member is discarded.
func (in recoveryInput) checkOrder() recovery.EtcdOrder {
	if in.Request.Restores() {
		return recovery.EtcdOrder{ID: in.Request.ID, Step: recovery.Stage, Snapshot: in.Request.Snapshot}
	}
	return in.order(recovery.Survey)
}

// rebuildOrder returns the order that follows the deletion of the other Machines.
func (in recoveryInput) rebuildOrder() recovery.EtcdOrder {
	if in.Request.Restores() {
		return in.order(recovery.Restore)
	}
	return in.order(recovery.Rebuild)
}

// origin describes the origin of the data.
func (in recoveryInput) origin() string {
	return in.rebuildOrRestore("the member of Machine "+in.Request.Survivor, "snapshot "+in.Request.Snapshot.Name+" on Machine "+in.Request.Survivor)
}

// rebuildOrRestore selects between the texts for a rebuild and for a restore.
func (in recoveryInput) rebuildOrRestore(member, snapshot string) string {
	if in.Request.Restores() {
		return snapshot
	}
	return member
}

// orders sends an order to the infrastructure machines that do not have it yet.
func (in recoveryInput) orders(want recovery.EtcdOrder, of ...recoveryMachine) []reconciler.Action {
	var out []reconciler.Action
	for _, m := range of {
		if m.Machine != nil && m.HasInfra && (m.Order == nil || *m.Order != want) {
			out = append(out, orderEtcd{Machine: m.Name, Order: want})
		}
	}
	return out
}

// survivor returns the survivor of the request. Its embedded Machine is nil if it does not exist.
func (in recoveryInput) survivor() recoveryMachine {
	for _, m := range in.Machines {
		if m.Name == in.Request.Survivor {
			return m
		}
	}
	return recoveryMachine{}
}

// remainingMachines returns the Machines that are not being deleted.
func (in recoveryInput) remainingMachines() []recoveryMachine {
	return slices.DeleteFunc(slices.Clone(in.Machines), recoveryMachine.isDeleted)
}

func (in recoveryInput) names(of []recoveryMachine) []string {
	var out []string
	for _, m := range of {
		out = append(out, m.Name)
	}
	return out
}

func (in recoveryInput) memberNames() []string {
	var out []string
	for _, m := range in.Members {
		out = append(out, m.Name)
	}
	return out
}

// lostNodesAmong returns the names that are Nodes of discarded members.
func (in recoveryInput) lostNodesAmong(names []string) []string {
	var out []string
	for _, lost := range in.Request.Lost {
		if lost.Node != "" && slices.Contains(names, lost.Node) {
			out = append(out, lost.Node)
		}
	}
	return out
}

func (in recoveryInput) discardedNodes() []string { return in.lostNodesAmong(in.Nodes) }

// isReported reports whether the condition already reports the end of this recovery.
func (in recoveryInput) isReported() bool {
	c := in.Conditions.Get(controlplanev1.RecoveredCondition)
	return c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, in.Request.ID)
}

// recoveredCondition returns the condition Recovered. Once it is True, it remains True until the next request.
func (in recoveryInput) recoveredCondition() condition.Result {
	at := in.progress()
	switch {
	case at.stage == stageDone:
		return condition.TrueBecause(reasonRecovered, fmt.Sprintf("Etcd was rebuilt from %s (recovery %s); its data from before is on its node, in a folder beside it that ends with -before-%s",
			in.origin(), in.Request.ID, in.Request.ID))
	case at.text != "":
		return condition.False(at.reason, at.text)
	case in.Conditions.IsTrue(controlplanev1.RecoveredCondition):
		return condition.Mirror(in.Conditions, controlplanev1.RecoveredCondition, condition.Absent())
	}
	return condition.Absent()
}
