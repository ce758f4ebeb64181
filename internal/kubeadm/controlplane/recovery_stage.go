package controlplane

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

const (
	// reasonRecovering is the reason of the condition, and of waits, during a recovery. Package etcdrecovery waits only
	// while the condition has this reason.
	reasonRecovering = "Recovering"
	// reasonRecovered is the reason of the condition after a recovery.
	reasonRecovered = "Recovered"
)

// The stages of a recovery, in order. Code compares them with < and >.
const (
	stageNone = iota
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

// recoveryState is the state of a recovery from the loss of the etcd quorum, which the annotation
// controlplane.slipway.dev/recover requests. [snapshot.withMembers] computes it once per reconciliation;
// recovery_decide.go plans the actions of its stage, and the condition Recovered reports it.
type recoveryState struct {
	// Request is the valid request, or nil. Invalid is the error of an invalid one.
	Request *recovery.RecoveryRequest
	Invalid *fault.Fault
	// Loss describes the loss of the quorum. Stage is the stage of the requested recovery.
	Loss  quorumLoss
	Stage reconciler.Stage
}

// withRecovery returns the snapshot with the state of the recovery, which is evaluated once for all decisions and
// conditions. [snapshot.withMembers] calls it.
func (s snapshot) withRecovery() snapshot {
	request, err := recovery.ParseRequest(s.ControlPlane.Annotations)
	s.Recovery = recoveryState{Request: request, Invalid: fault.As(err)}
	return s.withRecoveryStage()
}

func (s snapshot) withRecoveryStage() snapshot {
	s.Recovery.Loss = s.quorumLoss()
	s.Recovery.Stage = s.recoveryStage()
	return s
}

// recovering returns a stage of a recovery in progress.
func recovering(order int, format string, args ...any) reconciler.Stage {
	return reconciler.Stage{Order: order, Reason: reasonRecovering, Message: fmt.Sprintf(format, args...)}
}

// refused returns the stage of a request that the user has to correct.
func refused(reason, format string, args ...any) reconciler.Stage {
	return reconciler.Stage{Order: stageRefused, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// recoveryStage returns the stage of the recovery according to the table in the package documentation.
func (s snapshot) recoveryStage() reconciler.Stage {
	request := s.Recovery.Request
	switch {
	case s.Recovery.Invalid != nil:
		return refused(s.Recovery.Invalid.Reason, "%s", fault.UserMessage(s.Recovery.Invalid))
	case request == nil:
		return reconciler.Stage{}
	case !s.managesEtcd():
		return refused("RecoveryImpossible", "The etcd cluster of this control plane is external: recover it where it runs")
	case request.Survivor == "":
		return reconciler.Stage{Order: stageSurveying}
	case !request.Accepted && request.Restores():
		return s.evaluateRestore()
	case !request.Accepted:
		return s.evaluateRebuild()
	}
	survivor, unfenced := s.survivor(), s.unfencedMachines()
	switch {
	case len(s.lostNodesAmong(s.etcdNames())) == 0 && s.etcdProblem() == "" && s.Etcd.Members.HasQuorum() && s.isRebuilt(survivor):
		return s.finalStage()
	case len(unfenced) > 0 && !request.Force:
		return recovering(stageFencing, "Waiting for the infrastructure of %s to be deleted, because their etcd members could form a second cluster",
			machines.NamesText(unfenced))
	case survivor.Machine == nil:
		return reconciler.Stage{Order: stageFailed, Reason: "SurvivorMissing",
			Message: fmt.Sprintf("Machine %s, from which etcd is rebuilt, does not exist: restore a snapshot", request.Survivor)}
	case request.Manual:
		return recovering(stageRebuilding, recovery.ManualRebuild+" on Machine %s: "+
			"`slipway recover controlplane %s --manual` prints the commands", survivor.Name, s.Cluster.Name)
	case !survivor.Report.IsFor(s.rebuildOrder()) && request.Restores():
		return recovering(stageRebuilding, "Waiting for the infrastructure of Machine %s to restore etcd from snapshot %s",
			survivor.Name, request.Snapshot.Name)
	case !survivor.Report.IsFor(s.rebuildOrder()):
		return recovering(stageRebuilding, "Waiting for the infrastructure of Machine %s to rebuild etcd from its member", survivor.Name)
	case survivor.Report.Problem != "":
		return reconciler.Stage{Order: stageFailed, Reason: "RebuildFailed",
			Message: fmt.Sprintf("Etcd cannot be rebuilt on Machine %s: %s", survivor.Name, oneLine(survivor.Report.Problem))}
	}
	return recovering(stageSettling, "Etcd is rebuilt from %s: waiting for its API server to respond", s.recoveryOrigin())
}

// finalStage returns the final stages of a recovery, once etcd has quorum without the lost members.
func (s snapshot) finalStage() reconciler.Stage {
	switch nodes := s.discardedNodes(); len(nodes) {
	case 0:
		return reconciler.Stage{Order: stageDone}
	case 1:
		return recovering(stageCleaning, "Deleting Node %s of a discarded Machine", nodes[0])
	default:
		return recovering(stageCleaning, "Deleting Nodes %s of discarded Machines", strings.Join(nodes, ", "))
	}
}

// isRebuilt reports whether the survivor's etcd was rebuilt. For a manual rebuild, or if the survivor no longer
// exists, no report is expected and it returns true.
func (s snapshot) isRebuilt(survivor memberMachine) bool {
	return s.Recovery.Request.Manual || survivor.Machine == nil || survivor.Report.IsFor(s.rebuildOrder()) && survivor.Report.Problem == ""
}

// refusedSurvivor returns the stage for a request whose survivor cannot be used, or false.
func (s snapshot) refusedSurvivor() (reconciler.Stage, bool) {
	name, survivor := s.Recovery.Request.Survivor, s.survivor()
	switch {
	case survivor.Machine == nil:
		return refused("SurvivorUnknown", "Machine %s does not belong to this control plane: name another Machine", name), true
	case !survivor.DeletionTimestamp.IsZero() || !survivor.Status.NodeRef.IsDefined():
		return refused("SurvivorUnknown", "Machine %s is being deleted, or has no Node: name another Machine", name), true
	}
	return reconciler.Stage{}, false
}

// evaluateRebuild evaluates a request to rebuild etcd that has not been accepted yet.
func (s snapshot) evaluateRebuild() reconciler.Stage {
	if stage, is := s.refusedSurvivor(); is {
		return stage
	}
	request, survivor := s.Recovery.Request, s.survivor()
	switch {
	case s.hasQuorum():
		return refused("RecoveryNotNeeded", "Etcd has a quorum and needs no recovery: a health check, or annotation "+
			"cluster.x-k8s.io/remediate-machine, replaces lost Machines")
	case !request.Manual && !survivor.Report.IsFor(s.checkOrder()):
		return recovering(stageChecking, "Waiting for the infrastructure of Machine %s to report the state of its etcd member; "+
			"if its provider does not support this, use `slipway recover controlplane %s --manual`", survivor.Name, s.Cluster.Name)
	case !request.Manual && survivor.Report.Problem != "" && !request.Force:
		return refused("SurvivorUnusable", "The etcd member of Machine %s cannot be used: %s", survivor.Name, oneLine(survivor.Report.Problem))
	case !s.Recovery.Loss.IsLost && !request.Force:
		var names []string
		for _, m := range s.remainingMachines() {
			names = append(names, m.Name)
		}
		return refused("RecoveryUnclear", "Too few etcd members are known to be lost, so the members of %s may have a quorum: "+
			"find out why the API does not respond, or use `slipway recover controlplane %s --force` if they are lost", machines.NamesText(names), s.Cluster.Name)
	}
	return recovering(stageAccepting, "Etcd is going to be rebuilt from the member of Machine %s", survivor.Name)
}

// evaluateRestore evaluates a request to restore a snapshot. It does not require a lost quorum, because reverting to a
// snapshot is the user's choice. No member is discarded before the data of the snapshot is prepared next to the data
// in use.
func (s snapshot) evaluateRestore() reconciler.Stage {
	if stage, is := s.refusedSurvivor(); is {
		return stage
	}
	survivor, snapshot := s.survivor(), s.Recovery.Request.Snapshot
	switch {
	case s.Recovery.Request.Manual:
		return refused("RecoveryImpossible", "A snapshot cannot be restored manually: remove manual from the request")
	case !survivor.CreationTimestamp.Time.Before(snapshot.Time()):
		return refused("SurvivorNewer", "Machine %s is newer than snapshot %s, which does not contain its Node: "+
			"name an older Machine, or use a newer snapshot", survivor.Name, snapshot.Name)
	case !survivor.Report.IsFor(s.checkOrder()):
		return recovering(stageChecking, "Waiting for the infrastructure of Machine %s to prepare a data directory from snapshot %s",
			survivor.Name, snapshot.Name)
	case survivor.Report.Problem != "":
		return refused("SnapshotUnusable", "Snapshot %s cannot be restored on Machine %s, and nothing was changed: %s", snapshot.Name, survivor.Name,
			oneLine(survivor.Report.Problem))
	}
	return recovering(stageAccepting, "Etcd is going to be restored from snapshot %s on Machine %s", snapshot.Name, survivor.Name)
}

// hasQuorum reports whether a member knows a leader.
func (s snapshot) hasQuorum() bool {
	return s.etcdProblem() == "" && s.Workload.Etcd.Leader() != "" || slices.ContainsFunc(s.Members, func(m memberMachine) bool {
		return m.surveyed() != nil && m.surveyed().Leader && m.Report.ID == s.Recovery.Request.ID
	})
}

// checkOrder returns the order that checks the survivor before any member is discarded.
func (s snapshot) checkOrder() recovery.EtcdOrder {
	if s.Recovery.Request.Restores() {
		return recovery.EtcdOrder{ID: s.Recovery.Request.ID, Step: recovery.Stage, Snapshot: s.Recovery.Request.Snapshot}
	}
	return recovery.EtcdOrder{ID: s.Recovery.Request.ID, Step: recovery.Survey}
}

// rebuildOrder returns the order that follows the deletion of the other Machines.
func (s snapshot) rebuildOrder() recovery.EtcdOrder {
	if s.Recovery.Request.Restores() {
		return recovery.EtcdOrder{ID: s.Recovery.Request.ID, Step: recovery.Restore}
	}
	return recovery.EtcdOrder{ID: s.Recovery.Request.ID, Step: recovery.Rebuild}
}

// recoveryOrigin describes the origin of the data.
func (s snapshot) recoveryOrigin() string {
	if request := s.Recovery.Request; request.Restores() {
		return "snapshot " + request.Snapshot.Name + " on Machine " + request.Survivor
	}
	return "the member of Machine " + s.Recovery.Request.Survivor
}

// survivor returns the survivor of the request. Its embedded Machine is nil if it does not exist.
func (s snapshot) survivor() memberMachine { return s.named(s.Recovery.Request.Survivor) }

func (s snapshot) remainingMachines() []memberMachine {
	return slices.DeleteFunc(slices.Clone(s.Members), func(m memberMachine) bool { return !m.DeletionTimestamp.IsZero() })
}

// unfencedMachines returns the names of the discarded Machines whose infrastructure may still come back.
func (s snapshot) unfencedMachines() []string {
	var out []string
	for _, m := range s.Members {
		if s.Recovery.Request.Discards(m.Name) && !m.isFenced() {
			out = append(out, m.Name)
		}
	}
	return out
}

func (s snapshot) etcdNames() []string {
	var out []string
	for _, m := range s.Etcd.Members {
		out = append(out, m.Name)
	}
	return out
}

// lostNodesAmong returns the names that are Nodes of discarded members.
func (s snapshot) lostNodesAmong(names []string) []string {
	var out []string
	for _, lost := range s.Recovery.Request.Lost {
		if lost.Node != "" && slices.Contains(names, lost.Node) {
			out = append(out, lost.Node)
		}
	}
	return out
}

func (s snapshot) discardedNodes() []string {
	return s.lostNodesAmong(slices.Collect(maps.Keys(s.Workload.Nodes)))
}
