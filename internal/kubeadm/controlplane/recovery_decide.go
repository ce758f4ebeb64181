package controlplane

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

const (
	// recoveryInterval is the interval of reconciliations during a recovery, because no event is received for the
	// reports of infrastructure machines.
	recoveryInterval = 2 * time.Second
	// refusedInterval is the interval while a refused request waits for the user to change it.
	refusedInterval = 30 * time.Second
	// whyDiscarded is the reason for the actions on a discarded Machine.
	whyDiscarded = "the recovery discards its etcd member"
)

// recoverQuorum plans the next step of a recovery from the loss of the etcd quorum, and reports whether all other steps
// of the control plane are blocked. It is the first step of [decideChange]. The stage was determined before
// ([snapshot.recoveryStage]); this file has the actions of each stage.
func recoverQuorum(s snapshot, p *reconciler.Plan) bool {
	stage := s.Recovery.Stage
	needsUser := stage.Order == stageRefused || stage.Order == stageFailed
	if stage.Order == stageNone {
		surveys := s.surveys()
		p.Do(surveys...)
		if len(surveys) > 0 || s.isSurveyPending() {
			p.RecheckIn(recoveryInterval)
		}
		return false
	}
	if stage.Message != "" {
		wait := p.WaitFor(stage.Reason, "%s", stage.Message).For(clusterKind, s.Cluster.Name)
		if needsUser {
			wait.UntilUserActs()
		} else {
			wait.ForTime()
		}
	}
	if needsUser {
		p.RecheckIn(refusedInterval)
	} else {
		p.RecheckIn(recoveryInterval)
	}
	p.Do(s.recoveryActions()...)
	return stage.Order > stageRefused && stage.Order < stageDone
}

// recoveryActions returns the actions of the current stage.
func (s snapshot) recoveryActions() []reconciler.Action {
	var out []reconciler.Action
	switch s.Recovery.Stage.Order {
	case stageSurveying, stageChecking:
		return s.stageOrders()
	case stageAccepting:
		return []reconciler.Action{acceptRecovery{Request: s.acceptedRequest()}}
	case stageFencing:
		return s.fence()
	case stageRebuilding:
		return append(s.fence(), s.stageOrders()...)
	case stageCleaning:
		for _, node := range s.discardedNodes() {
			out = append(out, deleteNode{Node: node, Why: "the recovery discarded its Machine"})
		}
	case stageDone:
		if s.isRecoveryReported() {
			return []reconciler.Action{finishRecovery{ID: s.Recovery.Request.ID, Machine: s.Recovery.Request.Survivor}}
		}
	}
	return out
}

// stageOrders returns the orders of the current stage that the infrastructure machines do not have yet.
func (s snapshot) stageOrders() []reconciler.Action {
	switch order := s.Recovery.Stage.Order; {
	case order == stageSurveying:
		return s.orders(recovery.EtcdOrder{ID: s.Recovery.Request.ID, Step: recovery.Survey}, s.remainingMachines()...)
	case order == stageChecking:
		return s.orders(s.checkOrder(), s.survivor())
	case order == stageRebuilding && !s.Recovery.Request.Manual:
		return s.orders(s.rebuildOrder(), s.survivor())
	}
	return nil
}

// orders sends an order to the infrastructure machines that do not have it yet.
func (s snapshot) orders(want recovery.EtcdOrder, of ...memberMachine) []reconciler.Action {
	var out []reconciler.Action
	for _, m := range of {
		if m.Machine != nil && m.HasInfra && (m.Order == nil || *m.Order != want) {
			out = append(out, orderEtcd{Machine: m.Name, Order: want})
		}
	}
	return out
}

// isRecovering reports whether a survey or recovery is in progress, so that its progress is polled at a short interval.
// [decide] calls it for the interval of the reads.
func (s snapshot) isRecovering() bool {
	at := s.Recovery.Stage.Order
	return at > stageNone && at != stageRefused && at != stageFailed
}

// needsRead reports whether the next step depends on the state of the workload cluster. If not, reading it is skipped,
// because it would only delay the recovery until the read times out. [decide] checks it before each read.
func (s snapshot) needsRead() bool {
	switch s.Recovery.Stage.Order {
	case stageSurveying, stageChecking:
		return len(s.stageOrders()) == 0
	case stageFencing:
		return false
	case stageRebuilding:
		return s.Recovery.Request.Manual
	}
	return true
}

// acceptedRequest returns the accepted request, with the Machines and members to discard.
func (s snapshot) acceptedRequest() recovery.RecoveryRequest {
	out := *s.Recovery.Request
	out.Accepted, out.Lost = true, nil
	nodes := map[string]bool{s.survivor().EtcdName: true}
	for _, m := range s.Members {
		if m.Name != out.Survivor {
			out.Lost = append(out.Lost, recovery.LostMember{Machine: m.Name, Node: m.EtcdName})
			nodes[m.EtcdName] = true
		}
	}
	for _, member := range s.Etcd.Members {
		if member.Name != "" && !nodes[member.Name] {
			out.Lost = append(out.Lost, recovery.LostMember{Node: member.Name})
		}
	}
	return out
}

// fence deletes the discarded Machines. They are not drained, because the API does not respond.
func (s snapshot) fence() []reconciler.Action {
	var out []reconciler.Action
	for _, m := range s.Members {
		switch {
		case !s.Recovery.Request.Discards(m.Name) || s.isPending(m.OwnedMachine):
		case !m.isExcludedFromDrain():
			out = append(out, excludeFromDrain{Machine: m.Name})
		case m.DeletionTimestamp.IsZero():
			out = append(out, machines.DeleteMachines{Names: []string{m.Name}, Why: whyDiscarded})
		case hasHook(m.Machine):
			out = append(out, removeHook{Machine: m.Name, Why: whyDiscarded})
		}
	}
	return out
}

func (m memberMachine) isExcludedFromDrain() bool {
	_, drain := m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
	_, detach := m.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
	return drain && detach
}

// isFenced reports whether a Machine cannot come back: its infrastructure machine is deleted, and its deletion has
// reached a later stage. [snapshot.withRecovery] and [snapshot.quorumLoss] call it.
func (m memberMachine) isFenced() bool {
	deleting := condition.Set(m.Status.Conditions).Get(clusterv1.MachineDeletingCondition)
	return !m.DeletionTimestamp.IsZero() && !m.HasInfra && deleting != nil && slices.Contains([]string{
		clusterv1.MachineDeletingWaitingForBootstrapDeletionReason, clusterv1.MachineDeletingDeletingNodeReason, clusterv1.MachineDeletingDeletionCompletedReason,
	}, deleting.Reason)
}

// isRecoveryReported reports whether the condition already reports the end of this recovery.
func (s snapshot) isRecoveryReported() bool {
	c := condition.Set(s.ControlPlane.Status.Conditions).Get(controlplanev1.RecoveredCondition)
	return c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, s.Recovery.Request.ID)
}

// recoveredCondition returns the condition Recovered. Once it is True, it remains True until the next request. [report]
// calls it. The message of the condition must contain the ID of the request, because [snapshot.isRecoveryReported]
// searches for it.
func (s snapshot) recoveredCondition() condition.Result {
	present := condition.Set(s.ControlPlane.Status.Conditions)
	switch stage := s.Recovery.Stage; {
	case stage.Order == stageDone:
		return condition.TrueBecause(reasonRecovered, fmt.Sprintf("Etcd was rebuilt from %s (recovery %s); "+
			"the previous data is on the same node, in the folder whose name ends with -before-%s", s.recoveryOrigin(), s.Recovery.Request.ID, s.Recovery.Request.ID))
	case stage.Message != "":
		return condition.False(stage.Reason, stage.Message)
	case present.IsTrue(controlplanev1.RecoveredCondition):
		return condition.Mirror(present, controlplanev1.RecoveredCondition, condition.Absent())
	}
	return condition.Absent()
}
