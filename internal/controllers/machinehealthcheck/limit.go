package machinehealthcheck

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// limit is the range of unhealthy Machines in which remediation is allowed (spec.remediation.triggerIf). The controller
// computes it in each reconciliation, because a percentage depends on the number of Machines. assess stores it.
type limit struct {
	lowest, highest int
	// text is the limit as written in the spec.
	text string
}

// limitOf returns the limit of a health check for the given number of Machines. Cluster API defines that a range takes
// precedence over a number and that percentages are rounded down. The error describes an invalid spec.
func limitOf(trigger clusterv1.MachineHealthCheckRemediationTriggerIf, machines int) (limit, error) {
	if text := trigger.UnhealthyInRange; text != "" {
		lowest, highest, err := parseRange(text)
		return limit{lowest: lowest, highest: highest, text: "unhealthyInRange " + text}, err
	}
	most := trigger.UnhealthyLessThanOrEqualTo
	if most == nil {
		return limit{highest: math.MaxInt}, nil
	}
	highest, err := intstr.GetScaledValueFromIntOrPercent(most, machines, false)
	if err != nil {
		return limit{}, fmt.Errorf("spec.remediation.triggerIf.unhealthyLessThanOrEqualTo: %w", err)
	}
	return limit{highest: highest, text: "unhealthyLessThanOrEqualTo " + most.String()}, nil
}

// parseRange parses a range such as "[1-5]".
func parseRange(text string) (lowest, highest int, err error) {
	from, to, _ := strings.Cut(strings.Trim(text, "[]"), "-")
	if lowest, err = strconv.Atoi(from); err == nil {
		highest, err = strconv.Atoi(to)
	}
	if err != nil || highest < lowest {
		return 0, 0, fmt.Errorf("spec.remediation.triggerIf.unhealthyInRange: %q is not a range; write it like [1-5]", text)
	}
	return lowest, highest, nil
}

func (l limit) allows(unhealthy int) bool { return l.lowest <= unhealthy && unhealthy <= l.highest }

// left returns how many more Machines may become unhealthy before remediation stops, or 0 if it is not allowed now. It
// is reported as status.remediationsAllowed.
func (l limit) left(unhealthy, machines int) int {
	if !l.allows(unhealthy) {
		return 0
	}
	return min(l.highest, machines) - unhealthy
}
