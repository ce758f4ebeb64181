package etcdrecovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
)

// Reasons of faults.
const (
	reasonRecoveryUnsupported = "RecoveryUnsupported"
	reasonNotNeeded           = "RecoveryNotNeeded"
	reasonNoSurvivor          = "NoSurvivor"
	reasonRecoveryFailed      = "RecoveryFailed"
)

// RecoveryMember is a Machine with the known state of its etcd member. The survey (rebuild_survey.go) fills it in, and
// the plan selects the survivor among the members.
type RecoveryMember struct {
	Machine string `json:"machine"`
	Node    string `json:"node,omitempty"`
	// Lost is the reason why the member is lost; empty if it may not be.
	Lost string `json:"lost,omitempty"`
	// Found is the state that it reports; nil if there is none, for the reason Problem.
	Found   *recovery.MemberState `json:"found,omitempty"`
	Problem string                `json:"problem,omitempty"`
	// Created is the creation time of the Machine.
	Created time.Time `json:"-"`
}

// RecoveryPlan is the plan of a recovery, which `slipway recover controlplane` shows, also as JSON.
type RecoveryPlan struct {
	Cluster      string           `json:"cluster"`
	ControlPlane string           `json:"controlPlane"`
	Survivor     string           `json:"survivor"`
	Node         string           `json:"node"`
	Members      []RecoveryMember `json:"members"`
	// UnderWay means that the recovery has already been accepted, and is only followed.
	UnderWay bool `json:"underWay,omitempty"`
	Manual   bool `json:"manual,omitempty"`
	Force    bool `json:"force,omitempty"`
	// ID is the ID of the request.
	ID string `json:"id"`
	// Snapshot is the snapshot to restore; nil if the survivor's own data is used.
	Snapshot *RecoverySnapshot `json:"snapshot,omitempty"`
}

// RecoverySnapshot is the snapshot to restore, with the data that the restore loses.
type RecoverySnapshot struct {
	Snapshot
	// Since are the Machines created after the snapshot, whose Nodes are not in it.
	Since []string `json:"machinesSince,omitempty"`

	age  time.Duration
	want recovery.Snapshot
}

// RecoveryOptions has the options of a recovery. `slipway recover controlplane` fills it in from its flags.
type RecoveryOptions struct {
	// Survivor is the Machine to rebuild from; empty for the one with the most recent data.
	Survivor      string
	Manual, Force bool
	// Snapshot is the snapshot to restore; none if it has no name.
	Snapshot RestoreOptions
}

// chooseForSnapshot selects the Machine on which a snapshot is restored: the named one, or the oldest one that runs.
// The Node of a Machine that joined after the snapshot is not in the snapshot. [Recoverer.Prepare] calls it for a
// recovery from a snapshot.
func chooseForSnapshot(plane string, members []RecoveryMember, want RecoveryOptions, s Snapshot) (RecoveryMember, error) {
	older := slices.DeleteFunc(slices.Clone(members), func(m RecoveryMember) bool { return m.Node == "" || !m.Created.Before(s.Time) })
	if want.Survivor != "" {
		if at := slices.IndexFunc(older, func(m RecoveryMember) bool { return m.Machine == want.Survivor }); at >= 0 {
			return older[at], nil
		}
		return RecoveryMember{}, fault.New(fault.Invalid, reasonNoSurvivor, "KubeadmControlPlane %[2]s has no Machine %[1]s with a Node that is older than snapshot %[3]s: select one of %[4]s",
			want.Survivor, plane, s.Name, cmp.Or(machinesText(older), "none"))
	}
	running := slices.DeleteFunc(slices.Clone(older), func(m RecoveryMember) bool { return m.Lost != "" })
	if len(running) == 0 {
		return RecoveryMember{}, fault.New(fault.Invalid, reasonNoSurvivor, "KubeadmControlPlane %s has no running Machine whose Node is in snapshot %s (%s): start a Machine that is older than the snapshot, or use a newer snapshot; "+
			"without one, create the cluster again", plane, s.Name, cmp.Or(lostText(older), "all are newer"))
	}
	return slices.MinFunc(running, func(a, b RecoveryMember) int {
		return cmp.Or(cmp.Compare(a.Problem, b.Problem), a.Created.Compare(b.Created), strings.Compare(a.Machine, b.Machine))
	}), nil
}

// choose selects the Machine from which etcd is rebuilt: the named one, or the remaining one with the most recent data.
// [Recoverer.Prepare] calls it unless a snapshot is to be restored.
func choose(plane string, members []RecoveryMember, want RecoveryOptions) (RecoveryMember, error) {
	for _, m := range members {
		if m.Found != nil && m.Found.Leader {
			return RecoveryMember{}, fault.New(fault.Invalid, reasonNotNeeded,
				"etcd of KubeadmControlPlane %s has a quorum: the member of Machine %s has a leader, so no recovery is needed", plane, m.Machine)
		}
	}
	if want.Survivor != "" {
		if at := slices.IndexFunc(members, func(m RecoveryMember) bool { return m.Machine == want.Survivor }); at >= 0 && members[at].Node != "" {
			return members[at], nil
		}
		return RecoveryMember{}, fault.New(fault.Invalid, reasonNoSurvivor, "KubeadmControlPlane %[2]s has no Machine %[1]s with a Node: select one of %[3]s", want.Survivor, plane, machinesText(members))
	}
	left := slices.DeleteFunc(slices.Clone(members), func(m RecoveryMember) bool { return m.Lost != "" || m.Node == "" || m.Problem != "" })
	answered := slices.DeleteFunc(slices.Clone(left), func(m RecoveryMember) bool { return m.Found == nil })
	switch {
	case len(answered) > 0:
		return slices.MaxFunc(answered, func(a, b RecoveryMember) int {
			return cmp.Or(cmp.Compare(a.Found.Index, b.Found.Index), cmp.Compare(a.Found.Revision, b.Found.Revision), strings.Compare(b.Machine, a.Machine))
		}), nil
	case len(left) == 1 && want.Manual:
		return left[0], nil
	case len(left) == 0:
		return RecoveryMember{}, fault.New(fault.Invalid, reasonNoSurvivor, "KubeadmControlPlane %s has no remaining etcd member: %s; start one of the machines if possible", plane, lostText(members))
	}
	return RecoveryMember{}, fault.New(fault.Invalid, reasonNoSurvivor,
		"no infrastructure machine of KubeadmControlPlane %s reports the data of its etcd member; if the provider does not support it, select the Machine with --survivor (%s) and rebuild etcd manually with --manual", plane, machinesText(left))
}

func machinesText(members []RecoveryMember) string {
	var out []string
	for _, m := range members {
		out = append(out, m.Machine)
	}
	return strings.Join(out, ", ")
}

func lostText(members []RecoveryMember) string {
	var out []string
	for _, m := range members {
		out = append(out, "Machine "+m.Machine+": "+cmp.Or(m.Lost, m.Problem, "it has no Node"))
	}
	return strings.Join(out, "; ")
}

// memberOf returns the state of a Machine that is known before the survey. The survey (rebuild_survey.go) calls it for
// each Machine.
func memberOf(m clusterv1.Machine) RecoveryMember {
	out := RecoveryMember{Machine: m.Name, Node: m.Status.NodeRef.Name, Created: m.CreationTimestamp.Time}
	c := condition.Set(m.Status.Conditions).Get(clusterv1.InfrastructureReadyCondition)
	switch {
	case !m.DeletionTimestamp.IsZero():
		out.Lost = "it is being deleted"
	case c != nil && c.Status == "False":
		out.Lost = cmp.Or(strings.TrimPrefix(strings.Join(strings.Fields(c.Message), " "), "* "), "its infrastructure is not ready")
	}
	return out
}

// NeedsConfirmation reports whether an execution of the plan would start a recovery. It implements term.Plan, as Lines
// does.
func (p RecoveryPlan) NeedsConfirmation() bool { return !p.UnderWay }

// Lines formats the plan for display. `slipway recover controlplane` prints them before the confirmation.
func (p RecoveryPlan) Lines() []string {
	if p.UnderWay && p.Snapshot != nil {
		return []string{fmt.Sprintf("A restore of the control plane of cluster %s from snapshot %s on Machine %s is under way (%s).", p.Cluster, p.Snapshot.Name, p.Survivor, p.ID)}
	}
	if p.UnderWay {
		return []string{fmt.Sprintf("A recovery of the control plane of cluster %s from the member of etcd of Machine %s is under way (%s).", p.Cluster, p.Survivor, p.ID)}
	}
	lines := []string{fmt.Sprintf("Recovery of the control plane of cluster %s: etcd is rebuilt from the member of Machine %s.", p.Cluster, p.Survivor)}
	if s := p.Snapshot; s != nil {
		lines[0] = fmt.Sprintf("Restore of the control plane of cluster %s from snapshot %s of EtcdSnapshotPolicy %s, on Machine %s.", p.Cluster, s.Name, s.Policy, p.Survivor)
	}
	var replaced []string
	survivor := RecoveryMember{}
	for _, m := range p.Members {
		lines = append(lines, "  "+m.line(m.Machine == p.Survivor))
		if m.Machine == p.Survivor {
			survivor = m
		} else {
			replaced = append(replaced, m.Machine)
		}
	}
	if p.Snapshot != nil {
		lines = append(lines, p.Snapshot.lines(survivor)...)
	} else {
		lines = append(lines, p.describeData(survivor)...)
	}
	if len(replaced) > 0 {
		lines = append(lines, "  Machines that are deleted with their disks before the rebuild, and then replaced: "+strings.Join(replaced, ", "))
	}
	if p.Force {
		lines = append(lines, "  With --force, etcd is rebuilt although some of these members may still run: if one returns, there may be two clusters")
	}
	return append(lines, "  The API is not available until then. The survivor retains a copy of its current data.")
}

// lines describes the content of the snapshot and the data that is lost.
func (s RecoverySnapshot) lines(survivor RecoveryMember) []string {
	has := fmt.Sprintf("  Kept: the data at the time of the snapshot, %s (%s ago)", s.Time.UTC().Format(time.RFC3339), s.age.Round(time.Second))
	if s.Revision > 0 {
		has += fmt.Sprintf(", revision %d", s.Revision)
	}
	lost := "  Lost: all later writes to its API"
	if survivor.Found != nil && survivor.Found.Revision > s.Revision && s.Revision > 0 {
		lost += fmt.Sprintf(", up to revision %d", survivor.Found.Revision)
	}
	out := []string{has + ".", lost + "."}
	if len(s.Since) > 0 {
		out = append(out, fmt.Sprintf("  Newer Machines, whose Nodes are not in the snapshot: control plane Machines are replaced, others must join again: %s", joinNames(s.Since)))
	}
	return out
}

// describeData describes the data that is preserved, and the data whose state is unknown.
func (p RecoveryPlan) describeData(survivor RecoveryMember) []string {
	var lines []string
	if survivor.Found != nil {
		lines = append(lines, fmt.Sprintf("  Kept: everything up to revision %d.", survivor.Found.Revision))
		for _, m := range p.Members {
			if m.Found != nil && m.Found.Index > survivor.Found.Index {
				lines = append(lines, fmt.Sprintf("  Lost: newer data of Machine %s, whose member has a higher index (%d, not %d).", m.Machine, m.Found.Index, survivor.Found.Index))
			}
		}
	}
	return append(lines, "  Not known: whether unreachable members had acknowledged later writes. The last writes before their loss may be missing, unless the survivor was the leader.")
}

func (m RecoveryMember) line(survives bool) string {
	state := "state unknown"
	switch {
	case m.Lost != "":
		state = "lost: " + m.Lost
	case m.Problem != "":
		state = "lost: " + m.Problem
	case m.Found != nil && m.Found.Leader:
		state = "in a quorum"
	case m.Found != nil:
		state = fmt.Sprintf("left, without a leader, at revision %d (index %d)", m.Found.Revision, m.Found.Index)
	}
	if survives {
		state += " (survivor)"
	}
	return fmt.Sprintf("Machine %s: %s", m.Machine, state)
}
