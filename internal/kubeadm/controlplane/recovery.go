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

// recovering returns the input of decisions about a recovery from the loss of the quorum.
func (s snapshot) recovering(p reconciler.Plan) recoveryInput {
	in := recoveryInput{Now: s.Now, Before: s.Plane.Status.Conditions, Managed: s.managesEtcd(), Initialized: s.isInitialized()}
	if s.Cluster == nil {
		return in
	}
	in.Cluster, in.ReadError, in.Members, in.HasLeader = s.Cluster.Name, s.etcdProblem(), s.Etcd.Members, s.Workload.Etcd.Leader() != ""
	in.Down = s.Workload.Problem != ""
	in.Nodes = slices.Sorted(maps.Keys(s.Workload.Nodes))
	var err error
	if in.Request, err = recovery.ParseRequest(s.Plane.Annotations); err != nil {
		in.Problem, in.Reason = fault.UserMessage(err), fault.As(err).Reason
	}
	for _, m := range s.Machines {
		one := recoveryMachine{Machine: m.Machine, Written: isWritten(m, p), Member: m.Status.NodeRef.Name, MayHaveMember: s.Etcd.HasMember(m.Name)}
		if member, is := s.Etcd.Of(m.Name); is {
			one.Member = member.Name
			if member.Health == workload.QuorumUnhealthy {
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
func recoverQuorum(s snapshot, _ change, p *reconciler.Plan) bool { return s.recovering(*p).Decide(p) }

// actOnRecovery executes the actions of a recovery.
func (c *controller) actOnRecovery(ctx context.Context, s snapshot, do reconciler.Action) error {
	machine := s.Machines.Named(machineOf(do))
	to := recoveryTarget{Plane: s.Plane, Machine: machine.Machine, Nodes: s.Workload.Nodes, Workload: func(ctx context.Context) (client.Client, error) {
		return c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	}}
	if infra := s.Clones.InfrastructureOf(machine.Machine); infra.Unstructured != nil {
		to.Infra = infra.Unstructured
	}
	return recoveryAct(ctx, c.writer, to, do)
}
