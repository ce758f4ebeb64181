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

// quorumLoss describes whether etcd has lost its quorum. It is computed once per reconciliation, even if no recovery is
// requested: the conditions EtcdClusterHealthy, Available and EtcdMemberHealthy report it, and a request to rebuild
// etcd is refused without it, unless it has force.
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
// [snapshot.withRecovery] calls it.
func (s snapshot) quorumLoss() quorumLoss {
	if !s.managesEtcd() || !s.isInitialized() || len(s.Members) == 0 || s.etcdProblem() == "" && s.Workload.Etcd.Leader() != "" {
		return quorumLoss{}
	}
	out := quorumLoss{Why: map[string]string{}}
	var why []string
	for _, m := range s.Members {
		if found := m.surveyed(); found != nil && found.Leader && s.isCurrent(m.Report) {
			return quorumLoss{}
		}
		if m.EtcdName == "" && !m.MayHaveMember {
			continue // it has not joined yet
		}
		if problem := s.lostBecause(m); problem != "" {
			out.Why[m.Name] = problem
			out.Lost, why = append(out.Lost, m.Name), append(why, fmt.Sprintf("Machine %s: %s", m.Name, problem))
		} else {
			out.Left = append(out.Left, m.Name)
		}
	}
	voters := max(s.Etcd.Members.Voters(), len(out.Lost)+len(out.Left))
	if voters == 0 || len(out.Left) >= workload.QuorumSize(voters) { // voters is 0 if no Machine has joined
		return quorumLoss{}
	}
	out.IsLost = true
	todo := fmt.Sprintf("Start their machines again if possible; otherwise `slipway recover controlplane %s` rebuilds etcd from a remaining member", s.Cluster.Name)
	if len(out.Left) == 0 {
		todo = "Start one of the machines again if possible; otherwise the data of etcd is only in snapshots"
	}
	out.Text = fmt.Sprintf("Etcd has lost its quorum: %d of %d members left, %d needed. %s. %s", len(out.Left), voters, workload.QuorumSize(voters),
		cmp.Or(strings.Join(why, "; "), "The other members have no Machine"), todo)
	return out
}

// lostBecause returns the reason why the member of a Machine is lost, or the empty string.
func (s snapshot) lostBecause(m memberMachine) string {
	switch {
	case s.etcdProblem() == "":
		return m.Unreachable
	case m.isFenced():
		return "its machine is deleted"
	}
	c := condition.Set(m.Status.Conditions).Get(clusterv1.InfrastructureReadyCondition)
	if c != nil && c.Status == "False" && m.Status.Initialization.InfrastructureProvisioned != nil && *m.Status.Initialization.InfrastructureProvisioned {
		return cmp.Or(strings.TrimPrefix(oneLine(c.Message), "* "), "its infrastructure is not ready, reason "+c.Reason)
	}
	if s.isRecent(m.Report) && m.Report.Step == recovery.Survey {
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
func (s snapshot) isRecent(r *recovery.Report) bool {
	if r == nil {
		return false
	}
	at, err := time.Parse(recovery.IDLayout, r.ID)
	return s.Recovery.Request != nil && r.ID == s.Recovery.Request.ID || err == nil && s.Now.Sub(at).Abs() < recentFor
}

func (s snapshot) surveyID() string {
	return s.Now.UTC().Truncate(surveyEvery).Format(recovery.IDLayout)
}

// isCurrent reports whether a report belongs to the request or to the current survey. Older reports of a leader do
// not count.
func (s snapshot) isCurrent(r *recovery.Report) bool {
	return r != nil && (r.ID == s.surveyID() || s.Recovery.Request != nil && r.ID == s.Recovery.Request.ID)
}

// surveys orders a survey of the members while the API does not respond, to determine whether the quorum is lost. A
// machine without a report for its previous order gets no new one, because its provider may not support orders.
// [recoverQuorum] calls it.
func (s snapshot) surveys() []reconciler.Action {
	if s.Workload.Problem == "" || !s.managesEtcd() || !s.isInitialized() {
		return nil
	}
	return s.orders(recovery.EtcdOrder{ID: s.surveyID(), Step: recovery.Survey}, slices.DeleteFunc(s.remainingMachines(), func(m memberMachine) bool {
		return m.Order != nil && !m.Report.IsFor(*m.Order)
	})...)
}

// isSurveyPending reports whether an ordered survey has no report yet. [recoverQuorum] waits then.
func (s snapshot) isSurveyPending() bool {
	return s.Workload.Problem != "" && slices.ContainsFunc(s.remainingMachines(), func(m memberMachine) bool {
		return m.Order != nil && m.Order.Step == recovery.Survey && m.Order.ID == s.surveyID() && !m.Report.IsFor(*m.Order)
	})
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// surveyed returns the result of a survey, or nil.
func (m memberMachine) surveyed() *recovery.MemberState {
	if m.Report == nil || m.Report.Step != recovery.Survey || m.Report.Problem != "" {
		return nil
	}
	return m.Report.Member
}
