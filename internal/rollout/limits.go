package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Limits is a rollout strategy resolved for a number of replicas. The MachineDeployment controller resolves it in each
// reconciliation. [DeploymentState] contains them.
type Limits struct {
	// OnDelete replaces a Machine only after the user has deleted it. The numbers are zero in this case.
	OnDelete bool
	// MaxSurge is the number of Machines that may exist above the desired replicas.
	MaxSurge int32
	// MaxUnavailable is the number of the desired replicas that may be unavailable.
	MaxUnavailable int32
}

// Resolve resolves the numbers and percentages of a strategy. The MachineDeployment API defines the defaults (1 and 0)
// and the rounding of percentages: up for maxSurge, down for maxUnavailable. If both are zero, one Machine may be
// unavailable, because the rollout could not progress otherwise. The error names the field, because users read it in a
// condition.
func Resolve(strategy clusterv1.MachineDeploymentRolloutStrategy, replicas int32) (Limits, error) {
	if strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		return Limits{OnDelete: true}, nil
	}
	surge, err := scaled("maxSurge", strategy.RollingUpdate.MaxSurge, rounding{1, replicas, true})
	if err != nil {
		return Limits{}, err
	}
	unavailable, err := scaled("maxUnavailable", strategy.RollingUpdate.MaxUnavailable, rounding{0, replicas, false})
	if err != nil {
		return Limits{}, err
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return Limits{MaxSurge: surge, MaxUnavailable: min(unavailable, replicas)}, nil
}

// MaxInFlight returns how many Machines of the current MachineSet the MachineSet controller may remediate concurrently:
// a number, or a percentage of the deployment's replicas rounded up. The default is all of them. The MachineSet
// controller calls it when it decides about remediations.
func MaxInFlight(limit *intstr.IntOrString, replicas int32) (int32, error) {
	return scaled("maxInFlight", limit, rounding{replicas, replicas, true})
}

// MinAvailable returns how many Machines must be available.
func (l Limits) MinAvailable(replicas int32) int32 { return max(0, replicas-l.MaxUnavailable) }

// rounding holds the default of a number, the base of percentages, and the direction in which they are rounded.
type rounding struct {
	unset, total int32
	up           bool
}

func scaled(field string, value *intstr.IntOrString, r rounding) (int32, error) {
	if value == nil {
		return r.unset, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, int(r.total), r.up)
	if err != nil {
		return 0, fmt.Errorf("%s %q is neither a number nor a percentage: %w", field, value.String(), err)
	}
	if n < 0 {
		return 0, fmt.Errorf("%s %q is negative", field, value.String())
	}
	return int32(n), nil
}
