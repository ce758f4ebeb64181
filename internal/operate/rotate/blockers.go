package rotate

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
)

// problems returns the problems that a user must solve before the rotation of a cluster's CA can start or continue, for
// [decide].
func (s snapshot) problems(state rotationState) []string {
	var out []string
	switch {
	case !s.Cluster.DeletionTimestamp.IsZero():
		return []string{"the Cluster is being deleted"}
	case ptr.Deref(s.Cluster.Spec.Paused, false):
		out = append(out, "the Cluster is paused: remove spec.paused")
	case hasPause(s.Plane):
		out = append(out, "HostedControlPlane "+s.Plane.Name+" is paused: remove annotation "+clusterv1.PausedAnnotation)
	}
	if state.Phase == phaseNone {
		if text := s.controlPlaneLag(); text != "" {
			out = append(out, text)
		}
		if text := s.pendingRollout(); text != "" {
			out = append(out, text)
		}
		return append(out, s.unreplaceable(s.all())...)
	}
	if !state.InEffect || state.Phase == phaseNewOnly {
		return out
	}
	return append(out, s.unreplaceable(s.outdated(state))...)
}

func (s snapshot) all() []*clusterv1.Machine {
	return s.outdated(rotationState{Outdated: s.machineNames()})
}

// unreplaceable returns the reasons why Machines cannot be replaced by the rotation, with the remedy.
func (s snapshot) unreplaceable(machines []*clusterv1.Machine) []string {
	var out, alone []string
	for _, m := range machines {
		deployment, pool := m.Labels[clusterv1.MachineDeploymentNameLabel], m.Labels[clusterv1.MachinePoolNameLabel]
		text := ""
		switch {
		case !m.DeletionTimestamp.IsZero():
		case deployment != "":
			text = s.deploymentBlocker(deployment)
		case pool != "":
			text = s.poolBlocker(pool)
		default:
			alone = append(alone, m.Name)
		}
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for i := range s.Pools { // the machines of a pool without Machines are unknown
		if text := s.poolBlocker(s.Pools[i].Name); text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(alone) > 0 {
		out = append(out, "no MachineDeployment replaces "+condition.Names(prefixed("Machine ", alone))+": delete them, and create others in a MachineDeployment")
	}
	return out
}

func prefixed(prefix string, names []string) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, prefix+n)
	}
	return out
}

// deploymentBlocker returns the reason why a MachineDeployment does not replace its Machines.
func (s snapshot) deploymentBlocker(name string) string {
	at := slices.IndexFunc(s.Deployments, func(d clusterv1.MachineDeployment) bool { return d.Name == name })
	if at < 0 {
		return "MachineDeployment " + name + " is gone, and its Machines are not: delete them"
	}
	switch d := &s.Deployments[at]; {
	case ptr.Deref(d.Spec.Paused, false) || hasPause(d):
		return fmt.Sprintf("MachineDeployment %s is paused: resume it (slipway rollout resume md/%s)", name, name)
	case d.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType:
		return "MachineDeployment " + name + " replaces only Machines that are deleted (OnDelete): set the strategy RollingUpdate during the rotation"
	case d.Spec.Rollout.After.Time.After(s.Now.Add(restartTolerance)):
		return "MachineDeployment " + name + " is to be restarted later: remove spec.rollout.after"
	}
	return ""
}

// poolBlocker returns the reason why a MachinePool does not replace its machines.
func (s snapshot) poolBlocker(name string) string {
	at := slices.IndexFunc(s.Pools, func(p clusterv1.MachinePool) bool { return p.Name == name })
	if at < 0 {
		return ""
	}
	p := &s.Pools[at]
	ref := p.Spec.Template.Spec.InfrastructureRef
	switch {
	case hasPause(p):
		return "MachinePool " + name + " is paused: remove annotation " + clusterv1.PausedAnnotation
	case ref.APIGroup != infrav1.GroupVersion.Group || ref.Kind != "LocalMachinePool":
		return fmt.Sprintf("the nodes of MachinePool %s cannot be replaced, because its infrastructure is a %s: replace the authority manually", name, ref.Kind)
	}
	return ""
}

func hasPause(o metav1.Object) bool {
	_, paused := o.GetAnnotations()[clusterv1.PausedAnnotation]
	return paused
}
