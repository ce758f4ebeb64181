package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Limits is a strategy with its numbers resolved for a number of replicas.
type Limits struct {
	// OnDelete replaces a Machine only when its user deletes it; the numbers are zero then.
	OnDelete bool
	// MaxSurge is how many Machines there may be above the replicas.
	MaxSurge int32
	// MaxUnavailable is how many Machines below the replicas may be not available.
	MaxUnavailable int32
}

// Resolve resolves the numbers and percents of a strategy. Percents of maxSurge are rounded up, those of
// maxUnavailable down; unset, they are 1 and 0. Where both come out as zero one Machine may be unavailable, since a
// rollout could not move otherwise. The error names the field.
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

// MaxInFlight is how many Machines of the current MachineSet may be in remediation at once: a number, or a
// percent of the replicas rounded up; unset, all of them.
func MaxInFlight(limit *intstr.IntOrString, replicas int32) (int32, error) {
	return scaled("maxInFlight", limit, rounding{replicas, replicas, true})
}

// MinAvailable is how many Machines have to be available.
func (l Limits) MinAvailable(replicas int32) int32 { return max(0, replicas-l.MaxUnavailable) }

// rounding says what a number is when it is unset, what it is a percent of, and which way percents are rounded.
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
