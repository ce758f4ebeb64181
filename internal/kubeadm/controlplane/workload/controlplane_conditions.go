package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
)

// flakeTime is the time for which an unhealthy component is not reported in the condition Available.
const flakeTime = 10 * time.Second

// UnhealthyReason describes the first unhealthy component of a Machine, in the order of the conditions, ignoring the
// given types. It returns the empty string if all components are healthy. The KubeadmControlPlane controller calls it
// for each Machine in each reconciliation, and in the preflight checks before it creates or deletes a Machine.
func UnhealthyReason(m *clusterv1.Machine, managed bool, but ...string) string {
	if !m.Status.NodeRef.IsDefined() {
		return "has no Node yet"
	}
	set := condition.Set(m.Status.Conditions)
	for _, t := range ConditionTypes(managed)[1:] {
		c := set.Get(t)
		switch {
		case slices.Contains(but, t):
		case c == nil:
			return "does not report " + t + " yet"
		case c.Status != metav1.ConditionTrue && c.Message != "":
			return fmt.Sprintf("has %s %s: %s", t, c.Status, c.Message)
		case c.Status != metav1.ConditionTrue:
			return fmt.Sprintf("has %s %s, reason %s", t, c.Status, c.Reason)
		}
	}
	return ""
}

// ComponentsHealthy reports whether all component conditions and all etcd conditions of a Machine are True. The
// KubeadmControlPlane controller calls it for each Machine.
func ComponentsHealthy(m *clusterv1.Machine) (components, etcd bool) {
	return allTrue(m, componentTypes()), allTrue(m, etcdTypes())
}

func allTrue(m *clusterv1.Machine, types []string) bool {
	for _, t := range types {
		if !condition.Set(m.Status.Conditions).IsTrue(t) {
			return false
		}
	}
	return true
}

// ControlPlaneHealth is the input of the health conditions of a control plane. The KubeadmControlPlane controller fills
// it in when it computes its status, and its methods compute the conditions ControlPlaneComponentsHealthy,
// EtcdClusterHealthy and Available. Their reasons are the API of Cluster API, and their messages have its list format.
type ControlPlaneHealth struct {
	Now time.Time
	// Machines with their conditions after this reconciliation.
	Machines machines.List
	// Managed is true if etcd runs on the Machines. Etcd lists its members. EtcdProblem is the reason if they are
	// unknown.
	Managed     bool
	Etcd        EtcdMembers
	EtcdProblem string
	// Stale means that the workload cluster cannot be read now, and its previous state remains valid.
	Stale bool
	// Certificates is False if a certificate is missing.
	Certificates condition.Result
	// Initialized and Deleting describe the state of the control plane.
	Initialized, Deleting bool
	// Down means that the workload cluster has been unreadable for longer than the grace period.
	Down bool
	// Loss describes the loss of the etcd quorum and the remedy. It is empty if no loss is known.
	Loss string
}

// aggregate combines the conditions of the Machines to one message for each Machine.
func (p ControlPlaneHealth) aggregate(types []string, good, bad, unknown string) condition.Result {
	var members []condition.AggregateMember
	reasons := condition.Reasons{Info: good, Issue: bad, Unknown: unknown}
	for _, m := range p.Machines {
		var parts []condition.Part
		for _, t := range types {
			parts = append(parts, condition.Part{Type: t})
		}
		v := condition.Summarize(m.Status.Conditions, reasons, parts...)
		members = append(members, condition.AggregateMember{Kind: "Machine", Name: m.Name, Conditions: condition.Set{
			{Type: "Summary", Status: v.Status, Reason: v.Reason, Message: v.Message},
		}})
	}
	return condition.Aggregate(members, condition.Part{Type: "Summary"}, reasons)
}

// unread returns the condition if there is nothing to aggregate, or Absent.
func (p ControlPlaneHealth) unread() condition.Result {
	switch {
	case !p.Initialized:
		return condition.Unknown(clusterv1.InspectionFailedReason, "Waiting for the control plane to be initialized")
	case len(p.Machines) == 0:
		return condition.Unknown(clusterv1.InspectionFailedReason, "There is no control plane Machine")
	case p.Down:
		return condition.Unknown(clusterv1.ConnectionDownReason, "The workload cluster is not connected")
	}
	return condition.Absent()
}

// Components returns the condition ControlPlaneComponentsHealthy. The KubeadmControlPlane controller calls it for the
// status.
func (p ControlPlaneHealth) Components() condition.Result {
	if v := p.unread(); v != condition.Absent() {
		return v
	}
	types := componentTypes()
	if p.Managed {
		types = append(types, controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition)
	}
	return p.aggregate(types, controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyReason,
		controlplanev1.KubeadmControlPlaneControlPlaneComponentsNotHealthyReason,
		controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthUnknownReason)
}

// EtcdCluster returns the condition EtcdClusterHealthy, or Absent if etcd is external. The KubeadmControlPlane
// controller calls it for the status.
func (p ControlPlaneHealth) EtcdCluster() condition.Result {
	if !p.Managed {
		return condition.Absent()
	}
	if p.Loss != "" {
		return condition.False(controlplanev1.KubeadmControlPlaneEtcdClusterNotHealthyReason, "* "+p.Loss)
	}
	if v := p.unread(); v != condition.Absent() {
		return v
	}
	v := p.aggregate([]string{controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition},
		controlplanev1.KubeadmControlPlaneEtcdClusterHealthyReason, controlplanev1.KubeadmControlPlaneEtcdClusterNotHealthyReason,
		controlplanev1.KubeadmControlPlaneEtcdClusterHealthUnknownReason)
	if p.EtcdProblem != "" || len(p.Etcd) == 0 {
		return v
	}
	lines, harm := p.withoutMachine()
	if harm && v.Status == metav1.ConditionTrue {
		v = condition.False(controlplanev1.KubeadmControlPlaneEtcdClusterNotHealthyReason, "")
	}
	if v.Status != metav1.ConditionTrue {
		lines = append([]string{p.quorumText()}, lines...)
	}
	v.Message = strings.TrimSuffix(strings.Join(append(lines, v.Message), "\n"), "\n")
	return v
}

// withoutMachine describes the members without a Machine and how to remove them. It reports harm if one of them
// reduces the fault tolerance of etcd.
func (p ControlPlaneHealth) withoutMachine() (lines []string, harm bool) {
	for _, m := range p.Etcd {
		switch {
		case m.Class == memberForeign && !p.Etcd.AllowsRemoval(m.ID):
			lines = append(lines, fmt.Sprintf("* Etcd member %s has no Machine: delete Node %s if it is not needed, once the other members are healthy", m.Text(), m.Name))
		case m.Class == memberForeign:
			lines = append(lines, fmt.Sprintf("* Etcd member %s has no Machine: delete Node %s if it is not needed", m.Text(), m.Name))
		case m.Class == memberOrphaned && p.Etcd.AllowsRemoval(m.ID):
			lines = append(lines, fmt.Sprintf("* Etcd member %s has no Machine, and is going to be removed", m.Text()))
		case m.Class == memberOrphaned:
			lines = append(lines, fmt.Sprintf("* Etcd member %s has no Machine: it is removed once etcd has quorum without it", m.Text()))
		case m.Class == memberDisputed:
			lines = append(lines, fmt.Sprintf("* Etcd member %s cannot be matched to one Machine: provider IDs, addresses and status.nodeRef of Machines contradict each other", m.Text()))
		}
		harm = harm || m.Class == memberOrphaned || m.Class == memberForeign && !m.Learner && m.Health != MemberHealthy
	}
	return lines, harm
}

// quorumText describes how many members are healthy, for a message.
func (p ControlPlaneHealth) quorumText() string {
	unknown := ""
	if n := p.Etcd.Unknown(); n > 0 {
		unknown = fmt.Sprintf(", %d unknown", n)
	}
	return fmt.Sprintf("* %d of %d etcd members healthy%s, %d needed for quorum", p.Etcd.Healthy(), p.Etcd.Voters(), unknown, QuorumSize(p.Etcd.Voters()))
}

// Available returns the condition Available: certificates exist, all components of at least one Machine are healthy,
// and etcd has quorum. The message lists Machines that have been unhealthy for longer than flakeTime. The
// KubeadmControlPlane controller calls it for the status.
func (p ControlPlaneHealth) Available() condition.Result {
	const no, unknown = controlplanev1.KubeadmControlPlaneNotAvailableReason, controlplanev1.KubeadmControlPlaneAvailableInspectionFailedReason
	switch {
	case p.Deleting:
		return condition.False(no, "* Control plane metadata.deletionTimestamp is set")
	case !p.Initialized:
		return condition.False(no, "Control plane not yet initialized")
	case p.Certificates.Status != metav1.ConditionTrue:
		return condition.False(no, "* Control plane certificates are not available: "+p.Certificates.Message)
	case p.Loss != "":
		return condition.False(no, "* "+p.Loss)
	case p.Down:
		return condition.Unknown(clusterv1.ConnectionDownReason, "The workload cluster is not connected")
	}
	working, known := 0, 0
	for _, m := range p.Machines {
		components, etcd := ComponentsHealthy(m)
		if components && (etcd || !p.Managed) {
			working++
		}
		if p.isKnown(m) {
			known++
		}
	}
	hasQuorum := !p.Managed || (p.EtcdProblem == "" || p.Stale) && p.Etcd.HasQuorum()
	switch {
	case working > 0 && hasQuorum:
		return condition.TrueBecause(controlplanev1.KubeadmControlPlaneAvailableReason, p.partly())
	case p.Managed && p.EtcdProblem == "" && !p.Etcd.HasQuorum():
		return condition.False(no, p.quorumText())
	case known == 0:
		return condition.Unknown(unknown, "* The health of all control plane components is unknown")
	}
	if working > 0 {
		return condition.Unknown(unknown, "* The etcd members are unknown: "+p.EtcdProblem)
	}
	return condition.False(no, "* There are no Machines with healthy control plane components, at least 1 required")
}

// isKnown reports whether the health of any component of a Machine is known.
func (p ControlPlaneHealth) isKnown(m *clusterv1.Machine) bool {
	for _, t := range ConditionTypes(p.Managed)[1:] {
		if c := condition.Set(m.Status.Conditions).Get(t); c != nil && c.Status != metav1.ConditionUnknown {
			return true
		}
	}
	return false
}

// partly describes the Machines that have been unhealthy for at least flakeTime.
func (p ControlPlaneHealth) partly() string {
	lines := ""
	for _, m := range p.Machines {
		for _, t := range ConditionTypes(p.Managed)[1:] {
			c := condition.Set(m.Status.Conditions).Get(t)
			if c != nil && c.Status != metav1.ConditionTrue && p.Now.Sub(c.LastTransitionTime.Time) >= flakeTime {
				lines += fmt.Sprintf("* Machine %s: %s is %s\n", m.Name, t, c.Status)
				break
			}
		}
	}
	if lines == "" {
		return ""
	}
	return lines[:len(lines)-1]
}
