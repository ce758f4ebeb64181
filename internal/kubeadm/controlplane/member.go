package controlplane

import (
	"cmp"
	"slices"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// memberMachine is a Machine of the control plane with everything that decisions about it depend on.
// [snapshot.withMembers] computes it once after the objects are observed and again after the workload cluster is read,
// and all decisions of the package use it instead of the Machine.
type memberMachine struct {
	machines.OwnedMachine
	// Config is the KubeadmConfig. If it is nil, it is unknown and not compared.
	Config *bootstrapv1.KubeadmConfig
	// Template is the template from which the infrastructure machine was cloned. If it is undefined, it is unknown and
	// not compared.
	Template clusterv1.ContractVersionedObjectReference
	// Authority is the expiration of the CA that signed its certificates, or zero if unknown.
	Authority time.Time
	// Reasons to replace the Machine.
	Reasons []rolloutReason
	// Observed is the Machine with its conditions after this reconciliation.
	Observed *clusterv1.Machine
	// Unhealthy describes the first unhealthy component, or is empty. EtcdHealthy and ComponentsHealthy are true if all
	// respective conditions are True.
	Unhealthy                      string
	EtcdHealthy, ComponentsHealthy bool
	// Failed means that the Machine will never have a Node, because its bootstrap has failed.
	Failed bool
	// Obstacle is the reason why etcd would lose its quorum without the Machine's member, or empty.
	Obstacle string
	// Held means that the Machine is deleted, but its etcd member cannot be removed before others are healthy.
	Held bool
	// HasInfra is true if the infrastructure machine exists. Order and Report are its annotations for a recovery.
	HasInfra bool
	Order    *recovery.EtcdOrder
	Report   *recovery.Report
	// EtcdName is the name of the Machine's etcd member, which is the name of its Node, or empty if unknown.
	// MayHaveMember is true if it has a member or may have one.
	EtcdName      string
	MayHaveMember bool
	// Unreachable is the reason why the etcd member does not respond, if known. It is empty if the member responds or
	// could not be read.
	Unreachable string
}

func (m memberMachine) isOutdated() bool { return len(m.Reasons) > 0 }

// withMembers returns the snapshot with the fields that are derived from the Machines and the workload cluster. observe
// and read call it through [snapshot.compared].
func (s snapshot) withMembers() snapshot {
	s.Etcd, s.Members = s.matchMembers(), nil
	for _, m := range s.Machines {
		s.Members = append(s.Members, s.member(m))
	}
	s = s.withRecovery()
	for i := range s.Members {
		m := &s.Members[i]
		m.Observed = s.observed(*m)
		m.Unhealthy = workload.UnhealthyReason(m.Observed, s.managesEtcd())
		m.ComponentsHealthy, m.EtcdHealthy = workload.ComponentsHealthy(m.Observed)
	}
	s.Remediation = s.planRemediation()
	return s
}

// member returns a Machine with the fields that do not depend on other Machines.
func (s snapshot) member(m machines.OwnedMachine) memberMachine {
	out := memberMachine{
		OwnedMachine: m, Config: s.Configs[m.Spec.Bootstrap.ConfigRef.Name], Failed: s.Clones.NeverJoins(m.Machine),
		Obstacle: s.Etcd.Obstacle(m.Name), Held: s.memberObstacle(m) != "", EtcdName: m.Status.NodeRef.Name, MayHaveMember: s.Etcd.HasMember(m.Name),
	}
	if s.ControlPlane.Spec.Rollout.Before.CertificatesExpiryDays > 0 {
		out.Authority = secrets.ExpiresAt(s.Secrets[secrets.CA])
	}
	if infra := s.Clones.InfrastructureOf(m.Machine); infra.Unstructured != nil {
		out.HasInfra, out.Order, out.Report = true, recovery.ParseOrder(infra.GetAnnotations()), recovery.ParseReport(infra.GetAnnotations())
		out.Template, _ = clone.ClonedFrom(infra)
	}
	if member, is := s.Etcd.MemberOf(m.Name); is {
		out.EtcdName = cmp.Or(member.Name, out.EtcdName)
		if member.Health == workload.MemberUnhealthy {
			out.Unreachable = member.Problem
		}
	} else if !out.MayHaveMember {
		out.Unreachable = "etcd has no member on Node " + m.Status.NodeRef.Name
	}
	out.Reasons = rolloutReasons(s.ControlPlane, out, s.Now)
	return out
}

// matchMembers maps the etcd members to the Machines.
func (s snapshot) matchMembers() workload.MemberMatching {
	in := workload.MatchInput{Now: s.Now, Machines: s.Machines, ProviderIDs: map[string]string{}, State: s.Workload}
	for _, m := range s.Machines {
		in.ProviderIDs[m.Name] = contract.InfraMachine(s.Clones.InfrastructureOf(m.Machine)).ProviderID.Or("")
	}
	return workload.MatchMembers(in)
}

// named returns a Machine by its name. Its embedded Machine is nil if it does not exist. Messages and the recovery call
// it.
func (s snapshot) named(name string) memberMachine {
	for _, m := range s.Members {
		if m.Name == name {
			return m
		}
	}
	return memberMachine{}
}

// candidates returns the Machines that are not being deleted.
func (s snapshot) candidates() []memberMachine {
	return slices.DeleteFunc(slices.Clone(s.Members), func(m memberMachine) bool { return m.Deleted })
}

// outdated returns the names of the Machines that have to be replaced and are not being deleted. [scale], the in-place
// update and the condition about add-ons call it.
func (s snapshot) outdated() []string {
	var out []string
	for _, m := range s.candidates() {
		if m.isOutdated() {
			out = append(out, m.Name)
		}
	}
	return out
}

// observedMachines returns the Machines with their conditions after this reconciliation, for the status. [report] calls
// it.
func (s snapshot) observedMachines() machines.List {
	var out machines.List
	for _, m := range s.Members {
		out = append(out, m.Observed)
	}
	return out
}
