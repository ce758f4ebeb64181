package machinedeployment

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// hindrances say why Machines that are wanted are not made, a line each: a template that is missing, or what the
// MachineSets say in their condition ScalingUp below its first line, preflight checks above all (DP-12, MS-12). A set
// that was not looked at yet has nothing to say.
func hindrances(s Snapshot) []string {
	if problem := missing(s); problem != "" {
		return []string{problem}
	}
	var out []string
	for i := range s.Sets {
		set := &s.Sets[i]
		c := condition.Set(set.Status.Conditions).Get(clusterv1.MachineSetScalingUpCondition)
		if c == nil || c.Status != metav1.ConditionTrue || set.Status.ObservedGeneration == 0 || !set.DeletionTimestamp.IsZero() {
			continue
		}
		_, below, _ := strings.Cut(c.Message, "\n")
		for line := range strings.SplitSeq(below, "\n") {
			if line = strings.TrimPrefix(line, "* "); line != "" && !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	return out
}

// bullets lists lines below a message.
func bullets(message string, lines []string) string {
	for _, line := range lines {
		message += "\n* " + line
	}
	return message
}
