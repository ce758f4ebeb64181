package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// recoveryMachine is a Machine of the control plane.
type recoveryMachine struct {
	*clusterv1.Machine
	// PendingWrite means that this plan writes the Machine, or an earlier write is not in the cache yet.
	PendingWrite bool
	// HasInfra is true if the infrastructure machine exists. Order and Report are its annotations.
	HasInfra bool
	Order    *recovery.EtcdOrder
	Report   *recovery.Report
	// Member is the name of the Machine's etcd member, which is the name of its Node, or empty if unknown.
	// MayHaveMember is true if it has a member or may have one.
	Member        string
	MayHaveMember bool
	// Unreachable is the reason why the etcd member does not respond, if known. It is empty if the member responds or
	// could not be read.
	Unreachable string
}

// recoveryInput is the input of decisions about a recovery.
type recoveryInput struct {
	Now     time.Time
	Cluster string
	// APIUnreachable is true if the API of the workload cluster does not respond.
	APIUnreachable bool
	// Request is the valid request. If it is invalid, Problem and Reason describe the error.
	Request         *recovery.RecoveryRequest
	Problem, Reason string
	// Machines of the control plane, sorted by name.
	Machines []recoveryMachine
	// Managed is true if etcd runs on the Machines. Initialized is true if the cluster exists.
	Managed, Initialized bool
	// ReadError is the reason why the etcd members could not be read now, or empty. Members are the members that were
	// read last.
	ReadError string
	Members   workload.EtcdMembers
	// HasLeader is true if a responding member knows a leader.
	HasLeader bool
	// Nodes are the Nodes of the workload cluster that were read.
	Nodes []string
	// Conditions contains the present condition Recovered.
	Conditions condition.Set
}

// quorumLoss describes the loss of the etcd quorum.
type quorumLoss struct {
	// IsLost is true if the quorum is lost. Otherwise the other fields are empty.
	IsLost bool
	// Text describes the loss and the remedy.
	Text string
	// Lost and Left are the Machines with a lost member, and the other ones.
	Lost, Left []string
	// Why contains the reason for each lost member, by the name of its Machine.
	Why map[string]string
}

// quorumLoss returns whether too few members are left for a quorum. If the members could be read, it counts those that
// respond without a leader. If not, it counts those whose machines run according to their infrastructure.
func (in recoveryInput) quorumLoss() quorumLoss {
	if !in.Managed || !in.Initialized || len(in.Machines) == 0 || in.ReadError == "" && in.HasLeader {
		return quorumLoss{}
	}
	out := quorumLoss{Why: map[string]string{}}
	var why []string
	for _, m := range in.Machines {
		if found := m.surveyed(); found != nil && found.Leader && in.isCurrent(m.Report) {
			return quorumLoss{}
		}
		if m.member() == "" && !m.MayHaveMember {
			continue // it has not joined yet
		}
		if problem := in.lostBecause(m); problem != "" {
			out.Why[m.Name] = problem
			out.Lost, why = append(out.Lost, m.Name), append(why, fmt.Sprintf("Machine %s: %s", m.Name, problem))
		} else {
			out.Left = append(out.Left, m.Name)
		}
	}
	voters := max(in.Members.Voters(), len(out.Lost)+len(out.Left))
	if voters == 0 || len(out.Left) >= workload.QuorumSize(voters) { // voters is 0 if no Machine has joined
		return quorumLoss{}
	}
	out.IsLost = true
	todo := fmt.Sprintf("Start them where that is possible; otherwise `slipway recover controlplane %s` rebuilds etcd from a member that is left", in.Cluster)
	if len(out.Left) == 0 {
		todo = "Start one where that is possible; otherwise its data is in snapshots alone"
	}
	out.Text = fmt.Sprintf("Etcd has lost its quorum: %d of %d members left, %d needed. %s. %s", len(out.Left), voters, workload.QuorumSize(voters), cmp.Or(strings.Join(why, "; "), "The others have no Machine"), todo)
	return out
}

// lostBecause returns the reason why the member of a Machine is lost, or the empty string.
func (in recoveryInput) lostBecause(m recoveryMachine) string {
	switch {
	case in.ReadError == "":
		return m.Unreachable
	case m.isFenced():
		return "its machine is deleted"
	}
	c := condition.Set(m.Status.Conditions).Get(clusterv1.InfrastructureReadyCondition)
	if c != nil && c.Status == "False" && m.Status.Initialization.InfrastructureProvisioned != nil && *m.Status.Initialization.InfrastructureProvisioned {
		return cmp.Or(strings.TrimPrefix(oneLine(c.Message), "* "), "its infrastructure is not ready, reason "+c.Reason)
	}
	if in.isRecent(m.Report) && m.Report.Step == recovery.Survey {
		return m.Report.Problem
	}
	return ""
}

const (
	// surveyEvery is the interval of surveys while the API does not respond.
	surveyEvery = time.Minute
	// recentFor is the time for which a report of an unresponsive member remains valid.
	recentFor = 3 * time.Minute
)

// isRecent reports whether a report belongs to the request or is at most a few minutes old.
func (in recoveryInput) isRecent(r *recovery.Report) bool {
	if r == nil {
		return false
	}
	at, err := time.Parse(recovery.IDLayout, r.ID)
	return in.Request != nil && r.ID == in.Request.ID || err == nil && in.Now.Sub(at).Abs() < recentFor
}

// surveyID returns the ID of the current survey.
func (in recoveryInput) surveyID() string {
	return in.Now.UTC().Truncate(surveyEvery).Format(recovery.IDLayout)
}

// isCurrent reports whether a report belongs to the request or to the current survey. Older reports of a leader do
// not count.
func (in recoveryInput) isCurrent(r *recovery.Report) bool {
	return r != nil && (r.ID == in.surveyID() || in.Request != nil && r.ID == in.Request.ID)
}

// surveys orders a survey of the members while the API does not respond, to determine whether the quorum is lost. A
// machine without a report for its previous order gets no new one, because its provider may not support orders.
func (in recoveryInput) surveys() []reconciler.Action {
	if !in.APIUnreachable || !in.Managed || !in.Initialized {
		return nil
	}
	return in.orders(recovery.EtcdOrder{ID: in.surveyID(), Step: recovery.Survey}, slices.DeleteFunc(in.remainingMachines(), func(m recoveryMachine) bool {
		return m.Order != nil && !m.Report.IsFor(*m.Order)
	})...)
}

// isSurveyed reports whether the current survey is being ordered, or a report for it is pending.
func (in recoveryInput) isSurveyed() bool {
	return len(in.surveys()) > 0 || in.APIUnreachable && slices.ContainsFunc(in.remainingMachines(), func(m recoveryMachine) bool {
		return m.Order != nil && m.Order.Step == recovery.Survey && m.Order.ID == in.surveyID() && !m.Report.IsFor(*m.Order)
	})
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// surveyed returns the result of a survey, or nil.
func (m recoveryMachine) surveyed() *recovery.MemberState {
	if m.Report == nil || m.Report.Step != recovery.Survey || m.Report.Problem != "" {
		return nil
	}
	return m.Report.Member
}

func (m recoveryMachine) member() string { return cmp.Or(m.Member, m.Status.NodeRef.Name) }

func (m recoveryMachine) isDeleted() bool { return !m.DeletionTimestamp.IsZero() }

// isFenced reports whether a Machine cannot come back: its infrastructure machine is deleted, and its deletion has
// reached a later stage.
func (m recoveryMachine) isFenced() bool {
	deleting := condition.Set(m.Status.Conditions).Get(clusterv1.MachineDeletingCondition)
	return m.isDeleted() && !m.HasInfra && deleting != nil && slices.Contains([]string{
		clusterv1.MachineDeletingWaitingForBootstrapDeletionReason, clusterv1.MachineDeletingDeletingNodeReason, clusterv1.MachineDeletingDeletionCompletedReason,
	}, deleting.Reason)
}

func (m recoveryMachine) isExcluded() bool {
	_, drain := m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
	_, detach := m.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
	return drain && detach
}

func (m recoveryMachine) hasHook() bool { return hasHook(m.Machine) }

// recoveryInterval is the interval of reconciliations during a recovery, because no event is received for the reports
// of infrastructure machines.
const recoveryInterval = 2 * time.Second

// refusedInterval is the interval while a refused request waits for the user to change it.
const refusedInterval = 30 * time.Second
