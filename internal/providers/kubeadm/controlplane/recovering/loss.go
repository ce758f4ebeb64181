package recovering

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/hooks"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/quorum"
	"github.com/slipwayhq/slipway/internal/recovery"
)

// Machine is a Machine of the control plane.
type Machine struct {
	*clusterv1.Machine
	// Written tells that it is written now, or was and the cache does not show it.
	Written bool
	// HasInfra tells that its infrastructure machine exists. Order and Report are the annotations of that.
	HasInfra bool
	Order    *recovery.Order
	Report   *recovery.Report
	// Member is the name of the Machine's member of etcd, which is that of its Node; empty: not known. MayHaveMember: it has one, or may.
	Member        string
	MayHaveMember bool
	// Silent says why its member of etcd does not answer, where that could be read; empty: it does, or nothing could be read.
	Silent string
}

// Input is what a recovery is decided by.
type Input struct {
	Now     time.Time
	Cluster string
	// Down: the API of the workload cluster does not answer.
	Down bool
	// Request as it could be read; Problem says why not, Reason is that of it.
	Request         *recovery.Request
	Problem, Reason string
	// Machines of the control plane, by name.
	Machines []Machine
	// Managed: etcd runs on the Machines. Initialized: there is a cluster.
	Managed, Initialized bool
	// Unread says why the members of etcd could not be read now; empty: they were. Members are those that were read last.
	Unread  string
	Members quorum.Members
	// HasLeader tells that one of the members that answer knows a leader.
	HasLeader bool
	// Nodes are the Nodes of the workload cluster that were read.
	Nodes []string
	// Before is the condition Recovered as it is.
	Before condition.Set
}

// Loss of the quorum of etcd.
type Loss struct {
	// Is the quorum lost? Without that, the rest is empty.
	Is bool
	// Text says so, with who is lost and what to do.
	Text string
	// Lost and Left are the Machines whose members are lost, and the others.
	Lost, Left []string
	// Why says it of each that is lost, by the name of its Machine.
	Why map[string]string
}

// Loss says whether too few members are left for a quorum: where they could be read, of those that answer without a leader; where not, of
// those whose machines run as far as their infrastructure says.
func (in Input) Loss() Loss {
	if !in.Managed || !in.Initialized || len(in.Machines) == 0 || in.Unread == "" && in.HasLeader {
		return Loss{}
	}
	out := Loss{Why: map[string]string{}}
	var why []string
	for _, m := range in.Machines {
		if found := m.surveyed(); found != nil && found.Leader && in.isCurrent(m.Report) {
			return Loss{}
		}
		if m.member() == "" && !m.MayHaveMember {
			continue // it has not joined
		}
		if problem := in.lostBecause(m); problem != "" {
			out.Why[m.Name] = problem
			out.Lost, why = append(out.Lost, m.Name), append(why, fmt.Sprintf("Machine %s: %s", m.Name, problem))
		} else {
			out.Left = append(out.Left, m.Name)
		}
	}
	voters := max(in.Members.Voters(), len(out.Lost)+len(out.Left))
	if voters == 0 || len(out.Left) >= quorum.Of(voters) { // where none is known, none has joined
		return Loss{}
	}
	out.Is = true
	todo := fmt.Sprintf("Start them where that is possible; otherwise `slipway recover controlplane %s` rebuilds etcd from a member that is left", in.Cluster)
	if len(out.Left) == 0 {
		todo = "Start one where that is possible; otherwise its data is in snapshots alone"
	}
	out.Text = fmt.Sprintf("Etcd has lost its quorum: %d of %d members left, %d needed. %s. %s", len(out.Left), voters, quorum.Of(voters), cmp.Or(strings.Join(why, "; "), "The others have no Machine"), todo)
	return out
}

// lostBecause says why the member of a Machine is lost; empty: it may not be.
func (in Input) lostBecause(m Machine) string {
	switch {
	case in.Unread == "":
		return m.Silent
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
	// surveyEvery is how often members are surveyed while the API does not answer.
	surveyEvery = time.Minute
	// recentFor is how long it is believed that one does not answer.
	recentFor = 3 * time.Minute
)

// isRecent reports whether a report is the answer to the request, or of the last minutes.
func (in Input) isRecent(r *recovery.Report) bool {
	if r == nil {
		return false
	}
	at, err := time.Parse(recovery.IDLayout, r.ID)
	return in.Request != nil && r.ID == in.Request.ID || err == nil && in.Now.Sub(at).Abs() < recentFor
}

// surveyID is the id of the survey of now.
func (in Input) surveyID() string {
	return in.Now.UTC().Truncate(surveyEvery).Format(recovery.IDLayout)
}

// isCurrent reports whether a report is the answer to the request or to the survey of now: with a leader, nothing older counts.
func (in Input) isCurrent(r *recovery.Report) bool {
	return r != nil && (r.ID == in.surveyID() || in.Request != nil && r.ID == in.Request.ID)
}

// surveys orders a survey of members while the API does not answer, so that it can be said whether the quorum is lost. A machine
// that has not answered the last one is not ordered another: its provider may not know how.
func (in Input) surveys() []loop.Action {
	if !in.Down || !in.Managed || !in.Initialized {
		return nil
	}
	return in.orders(recovery.Order{ID: in.surveyID(), Step: recovery.Survey}, slices.DeleteFunc(in.staying(), func(m Machine) bool {
		return m.Order != nil && !m.Report.Answers(*m.Order)
	})...)
}

// isSurveyed reports whether a member has been ordered the survey of now, or is, and has not answered it yet.
func (in Input) isSurveyed() bool {
	return len(in.surveys()) > 0 || in.Down && slices.ContainsFunc(in.staying(), func(m Machine) bool {
		return m.Order != nil && m.Order.Step == recovery.Survey && m.Order.ID == in.surveyID() && !m.Report.Answers(*m.Order)
	})
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// surveyed is what a survey found; nil: nothing.
func (m Machine) surveyed() *recovery.Member {
	if m.Report == nil || m.Report.Step != recovery.Survey || m.Report.Problem != "" {
		return nil
	}
	return m.Report.Member
}

func (m Machine) member() string { return cmp.Or(m.Member, m.Status.NodeRef.Name) }

func (m Machine) isDeleted() bool { return !m.DeletionTimestamp.IsZero() }

// isFenced reports whether nothing of a Machine can come back: its infrastructure machine is deleted, or it is about to go itself.
func (m Machine) isFenced() bool {
	deleting := condition.Set(m.Status.Conditions).Get(clusterv1.MachineDeletingCondition)
	return m.isDeleted() && !m.HasInfra && deleting != nil && slices.Contains([]string{
		clusterv1.MachineDeletingWaitingForBootstrapDeletionReason, clusterv1.MachineDeletingDeletingNodeReason, clusterv1.MachineDeletingDeletionCompletedReason,
	}, deleting.Reason)
}

func (m Machine) isExcluded() bool {
	_, drain := m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
	_, detach := m.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
	return drain && detach
}

func (m Machine) hasHook() bool { return hooks.Has(m.Machine) }

// Interval is how often to decide again while a recovery is under way: nothing tells of what an infrastructure machine reports.
const Interval = 2 * time.Second

// refusedInterval is that for a request that waits for a person: it stays until it is taken back.
const refusedInterval = 30 * time.Second
