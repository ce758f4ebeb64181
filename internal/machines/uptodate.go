package machines

import (
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// UpToDate computes the UpToDate condition of a Machine of a standalone MachineSet from the templates that the Machine
// was created from. While these are unknown, the condition stays unchanged. The result is absent if the condition was
// never set or the owner does not set it with this package ([OwnerState.ByOrigin]): the Machine controller computes the
// condition for MachineDeployments, the KubeadmControlPlane controller for its own Machines.
func (s OwnerState) UpToDate(m *clusterv1.Machine) condition.Result {
	if !s.ByOrigin {
		return condition.Absent()
	}
	from, known := s.Clones.OriginOf(m, s.Definition.Spec)
	if !known {
		return condition.Mirror(m.Status.Conditions, clusterv1.MachineUpToDateCondition, condition.Absent())
	}
	desired := clusterv1.MachineTemplateSpec{Spec: s.Definition.Spec}
	return rollout.ConditionOfChanges(m, rollout.Differences(from.Template, desired), from.Unknown)
}

// IsUndecided reports whether it is unknown if a Machine is up to date, so that its clones have to be read again. The
// MachineSet controller calls it to decide whether to read clones.
func (s OwnerState) IsUndecided(m OwnedMachine) bool {
	if m.Deleted || !s.ByOrigin {
		return false
	}
	from, known := s.Clones.OriginOf(m.Machine, s.Definition.Spec)
	return len(from.Unknown) > 0 || !known && condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition) == nil
}

// SetConditions returns the actions that set the conditions UpToDate and OwnerRemediated of the Machines. The
// MachineSet controller calls it in each reconciliation.
func (s OwnerState) SetConditions(r Remediation) []reconciler.Action {
	var out []reconciler.Action
	verdicts := r.Conditions()
	for _, m := range s.Members {
		if m.Deleted || m.Stale {
			continue
		}
		if action, differs := newSetConditions(m.Machine, s.UpToDate(m.Machine), verdicts[m.Name]); differs {
			out = append(out, action)
		}
	}
	return out
}

// IsUpToDate reports whether no action is left that requires reading clones. Owners then record it in [Verified].
func (s OwnerState) IsUpToDate() bool {
	return len(s.Propagation()) == 0 && !slices.ContainsFunc(s.Members, func(m OwnedMachine) bool {
		current := condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition)
		return s.IsUndecided(m) || !m.Deleted && differs(current, s.UpToDate(m.Machine))
	})
}
