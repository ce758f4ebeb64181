package cluster

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// members returns Machines as the input of an aggregated condition. The other functions of this file do the same for
// the other kinds that conditions.go aggregates. The rows in conditions.go call all of them.
func members(machines []*clusterv1.Machine) []condition.AggregateMember {
	out := make([]condition.AggregateMember, 0, len(machines))
	for _, m := range machines {
		out = append(out, condition.AggregateMember{Kind: "Machine", Name: m.Name, Conditions: m.Status.Conditions})
	}
	return out
}

// deploymentMembers returns the MachineDeployments, for the aggregated conditions of the workers and of their replicas.
func (j conditionInput) deploymentMembers() []condition.AggregateMember {
	var out []condition.AggregateMember
	for _, d := range j.Deployments {
		out = append(out, condition.AggregateMember{Kind: "MachineDeployment", Name: d.Name, Conditions: d.Status.Conditions})
	}
	return out
}

// poolMembers returns the MachinePools, for the same conditions as deploymentMembers.
func (j conditionInput) poolMembers() []condition.AggregateMember {
	var out []condition.AggregateMember
	for _, p := range j.Pools {
		out = append(out, condition.AggregateMember{Kind: "MachinePool", Name: p.Name, Conditions: p.Status.Conditions})
	}
	return out
}

// setMembers returns the MachineSets without a MachineDeployment. The conditions ScalingUp and ScalingDown aggregate
// them.
func (j conditionInput) setMembers() []condition.AggregateMember {
	var out []condition.AggregateMember
	for i, m := range j.Sets {
		if standalone(&j.Sets[i]) {
			out = append(out, condition.AggregateMember{Kind: "MachineSet", Name: m.Name, Conditions: m.Status.Conditions})
		}
	}
	return out
}

// controlPlaneMember returns the control plane object, if it exists, for the aggregated conditions of replicas.
func (j conditionInput) controlPlaneMember(conditionType string) []condition.AggregateMember {
	c, ok := j.ControlPlane.Condition(conditionType).Get()
	if !ok {
		return nil
	}
	return []condition.AggregateMember{{Kind: j.ControlPlane.GetKind(), Name: j.ControlPlane.GetName(), Conditions: condition.Set{c}}}
}
