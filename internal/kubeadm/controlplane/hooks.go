package controlplane

import (
	"slices"
	"strings"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/version"
)

// hasHook reports whether a Machine has the pre-terminate hook of its control plane, an annotation that every Machine
// gets at its creation. The Machine controller waits until the hook is removed before it deletes the infrastructure, so
// that the etcd member can be removed first. [decideChange] calls [releaseDeleted] and [removeOrphanedMembers]; the
// rules are in the package documentation.
func hasHook(m *clusterv1.Machine) bool {
	_, has := m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]
	return has
}

// isHookReached reports whether the Machine controller waits for the hook.
func isHookReached(m *clusterv1.Machine) bool {
	deleting := condition.Set(m.Status.Conditions).Get(clusterv1.DeletingCondition)
	return hasHook(m) && deleting != nil && deleting.Reason == clusterv1.MachineDeletingWaitingForPreTerminateHookReason
}

// isHookLast reports whether the hook must be removed after all other hooks. Since v1.31 the kubelet of a control plane
// Machine uses the API server on the same Machine, which stops together with its etcd member.
func isHookLast(m *clusterv1.Machine) bool {
	v, err := version.Parse(m.Spec.Version)
	return err != nil || v.Major > 1 || v.Minor >= 31
}

// otherHooks returns the pre-terminate hooks of other owners.
func otherHooks(m *clusterv1.Machine) []string {
	var out []string
	for key := range m.Annotations {
		if strings.HasPrefix(key, clusterv1.PreTerminateDeleteHookAnnotationPrefix) && key != controlplanev1.PreTerminateHookCleanupAnnotation {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

const waitForEtcd = "WaitingForEtcd"

// releaseDeleted processes one deleted Machine that waits for the hook, and reports whether there is one. A Machine
// whose member cannot be removed does not block other Machines, because one of them may have to be replaced first.
func releaseDeleted(s snapshot, p *reconciler.Plan) bool {
	for _, m := range s.hookedMachines() {
		if why := s.memberObstacle(m); why != "" {
			p.WaitFor(waitForEtcd, "The etcd member of Machine %s cannot be removed: %s", m.Name, why).For(machineKind, m.Name).ForTime()
			p.RecheckIn(unhealthyInterval)
			continue
		}
		s.releaseMachine(m, p)
		return true
	}
	return false
}

// memberObstacle returns the reason why the member of a Machine cannot be removed now. It is empty if it can be
// removed, or if another step comes first.
func (s snapshot) memberObstacle(m machines.OwnedMachine) string {
	if !isHookReached(m.Machine) || !s.hasEtcd() || s.etcdProblem() != "" || !s.isAnyLeft() {
		return ""
	}
	if _, is := s.Etcd.MemberOf(m.Name); !is {
		return s.Etcd.Doubt(m.Name)
	}
	return s.Etcd.Obstacle(m.Name)
}

func (s snapshot) hasEtcd() bool { return s.managesEtcd() && s.isInitialized() }

func (s snapshot) isAnyLeft() bool {
	return slices.ContainsFunc(s.Machines, func(m machines.OwnedMachine) bool { return !m.Deleted })
}

// releaseMachine removes the etcd member and then the hook of a Machine.
func (s snapshot) releaseMachine(m machines.OwnedMachine, p *reconciler.Plan) {
	others := otherHooks(m.Machine)
	switch {
	case s.isPending(m):
		p.RecheckIn(soon)
	case !isHookReached(m.Machine):
		p.RecheckIn(deletionRecheck)
	case len(others) > 0 && isHookLast(m.Machine):
		p.WaitFor(waitForEtcd, "Waiting for the owners of the other pre-terminate hooks of Machine %s to remove annotations %s", m.Name, strings.Join(others, ", ")).
			For(machineKind, m.Name).ToChange("metadata.annotations")
	case !s.hasEtcd():
		p.Do(removeHook{Machine: m.Name, Why: "it has no etcd member"})
	case m.Spec.Bootstrap.DataSecretName == nil && !m.Status.NodeRef.IsDefined():
		p.Do(removeHook{Machine: m.Name, Why: "it never had bootstrap data, and so no etcd member"})
	case !s.isAnyLeft():
		p.Do(removeHook{Machine: m.Name, Why: "no other Machine is left that could remove its etcd member"})
	case s.etcdProblem() != "":
		p.WaitFor(waitForEtcd, "The etcd member of Machine %s cannot be removed before the other members respond: %s", m.Name, s.etcdProblem()).For(machineKind, m.Name).ForTime()
		p.RecheckIn(unhealthyInterval)
	default:
		s.removeMember(m, p)
	}
}

// hookedMachines returns the Machines with the hook that are being deleted, in the order of their deletion.
func (s snapshot) hookedMachines() []machines.OwnedMachine {
	var out []machines.OwnedMachine
	for _, m := range s.Machines {
		if !m.DeletionTimestamp.IsZero() && hasHook(m.Machine) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b machines.OwnedMachine) int {
		return a.DeletionTimestamp.Time.Compare(b.DeletionTimestamp.Time)
	})
	return out
}

// removeMember transfers leadership away from a Machine, removes its member and then its hook.
func (s snapshot) removeMember(m machines.OwnedMachine, p *reconciler.Plan) {
	member, is := s.Etcd.MemberOf(m.Name)
	if !is {
		p.Do(removeHook{Machine: m.Name, Why: "it has no etcd member"})
		return
	}
	if s.Workload.Etcd.Leader() == member.Name && member.Health == workload.MemberHealthy { // an unreachable leader loses leadership when its member is removed
		if to, ok := workload.NextLeader(s.Etcd, s.Machines, member.ID); ok {
			p.Do(moveLeader{To: to.ID, Node: to.Name, From: member.Name})
		}
	}
	p.Do(removeMember{ID: member.ID, Name: member.Text(), Why: "Machine " + m.Name + " is being deleted"},
		removeHook{Machine: m.Name, Why: "its etcd member is removed"})
}

// removeOrphanedMembers removes one orphaned member if the quorum permits, and reports whether it does.
func removeOrphanedMembers(s snapshot, p *reconciler.Plan) bool {
	if len(s.Created) > 0 || !s.managesEtcd() || s.etcdProblem() != "" {
		return false
	}
	for _, member := range s.Etcd.Orphans() {
		if s.Etcd.Members.AllowsRemoval(member.ID) {
			p.Do(removeMember{ID: member.ID, Name: member.Text(), Why: "no Machine and no Node runs it"})
			return true
		}
	}
	return false
}
