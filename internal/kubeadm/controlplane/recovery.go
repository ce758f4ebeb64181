package controlplane

import (
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// recoveryInput returns the input of decisions about a recovery from the loss of the quorum.
func (s snapshot) recoveryInput(p reconciler.Plan) recoveryInput {
	in := recoveryInput{Now: s.Now, Conditions: s.ControlPlane.Status.Conditions, Managed: s.managesEtcd(), Initialized: s.isInitialized()}
	if s.Cluster == nil {
		return in
	}
	in.Cluster, in.ReadError, in.Members, in.HasLeader = s.Cluster.Name, s.etcdProblem(), s.Etcd.Members, s.Workload.Etcd.Leader() != ""
	in.APIUnreachable = s.Workload.Problem != ""
	in.Nodes = slices.Sorted(maps.Keys(s.Workload.Nodes))
	var err error
	if in.Request, err = recovery.ParseRequest(s.ControlPlane.Annotations); err != nil {
		in.Problem, in.Reason = fault.UserMessage(err), fault.As(err).Reason
	}
	for _, m := range s.Machines {
		one := recoveryMachine{Machine: m.Machine, PendingWrite: isWritten(m, p), Member: m.Status.NodeRef.Name, MayHaveMember: s.Etcd.HasMember(m.Name)}
		if member, is := s.Etcd.MemberOf(m.Name); is {
			one.Member = member.Name
			if member.Health == workload.MemberUnhealthy {
				one.Unreachable = member.Problem
			}
		} else if !one.MayHaveMember {
			one.Unreachable = "etcd has no member on Node " + m.Status.NodeRef.Name
		}
		if infra := s.Clones.InfrastructureOf(m.Machine); infra.Unstructured != nil {
			one.HasInfra, one.Order, one.Report = true, recovery.ParseOrder(infra.GetAnnotations()), recovery.ParseReport(infra.GetAnnotations())
		}
		in.Machines = append(in.Machines, one)
	}
	return in
}

// recoverQuorum plans a requested recovery. While a recovery is in progress, no other step is executed.
func recoverQuorum(s snapshot, _ changeInput, p *reconciler.Plan) bool {
	return s.recoveryInput(*p).decide(p)
}

// actOnRecovery executes the actions of a recovery.
func (c *controller) actOnRecovery(ctx context.Context, s snapshot, do reconciler.Action) error {
	machine := s.Machines.Named(recoveryActionMachine(do))
	to := recoveryTarget{ControlPlane: s.ControlPlane, Machine: machine.Machine, Nodes: s.Workload.Nodes, Workload: func(ctx context.Context) (client.Client, error) {
		return c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	}}
	if infra := s.Clones.InfrastructureOf(machine.Machine); infra.Unstructured != nil {
		to.Infra = infra.Unstructured
	}
	return executeRecovery(ctx, c.writer, to, do)
}
