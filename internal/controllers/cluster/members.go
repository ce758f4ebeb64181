package cluster

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

func members(machines []*clusterv1.Machine) []condition.Member {
	out := make([]condition.Member, 0, len(machines))
	for _, m := range machines {
		out = append(out, condition.Member{Kind: "Machine", Name: m.Name, Conditions: m.Status.Conditions})
	}
	return out
}

func (j conditionInput) deploymentMembers() []condition.Member {
	var out []condition.Member
	for _, d := range j.Deployments {
		out = append(out, condition.Member{Kind: "MachineDeployment", Name: d.Name, Conditions: d.Status.Conditions})
	}
	return out
}

func (j conditionInput) poolMembers() []condition.Member {
	var out []condition.Member
	for _, p := range j.Pools {
		out = append(out, condition.Member{Kind: "MachinePool", Name: p.Name, Conditions: p.Status.Conditions})
	}
	return out
}

// setMembers returns the MachineSets without a MachineDeployment.
func (j conditionInput) setMembers() []condition.Member {
	var out []condition.Member
	for i, m := range j.Sets {
		if standalone(&j.Sets[i]) {
			out = append(out, condition.Member{Kind: "MachineSet", Name: m.Name, Conditions: m.Status.Conditions})
		}
	}
	return out
}

func (j conditionInput) controlPlaneMember(conditionType string) []condition.Member {
	c, ok := j.ControlPlane.Condition(conditionType).Get()
	if !ok {
		return nil
	}
	return []condition.Member{{Kind: j.ControlPlane.GetKind(), Name: j.ControlPlane.GetName(), Conditions: condition.Set{c}}}
}
