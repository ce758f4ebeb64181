package machinedeployment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// creationBlockers returns why missing Machines are not created, or not transferred for an in-place update, one line
// for each reason, for the conditions RollingOut, ScalingUp and Available. Reasons are a missing template, and the
// details in the ScalingUp conditions of the MachineSets (ScalingDown for MachineSets that transfer their Machines),
// mostly preflight checks. It depends on the form of these messages: the details begin in the second line. MachineSets
// that were not reconciled yet are ignored.
func creationBlockers(s snapshot) []string {
	if problem := scalingProblem(s); problem != "" {
		return []string{problem}
	}
	var out []string
	for i := range s.Sets {
		set := &s.Sets[i]
		blocked := clusterv1.MachineSetScalingUpCondition
		if inplace.TransferTarget(set) != "" {
			blocked = clusterv1.MachineSetScalingDownCondition
		}
		c := condition.Set(set.Status.Conditions).Get(blocked)
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

// scalingProblem returns why the deployment cannot create Machines regardless of its MachineSets: its Cluster, the
// operator's policy, or a template. It returns an empty string if there is none. Such a reason blocks the rollout, and
// the condition ScalingUp reports it.
func scalingProblem(s snapshot) string {
	return cmp.Or(clusterProblem(s), s.Policy.DeniedReplicas(ptr.Deref(s.Deployment.Spec.Replicas, 0)), templateProblem(s))
}

// clusterProblem returns a message if the Cluster does not exist.
func clusterProblem(s snapshot) string {
	switch {
	case s.Cluster != nil || !s.Deployment.DeletionTimestamp.IsZero():
		return ""
	case clusterAwaited(s) > 0:
		return fmt.Sprintf("Cluster %s has yet to be created", s.Deployment.Spec.ClusterName)
	}
	return fmt.Sprintf("Cluster %s does not exist: create it, or delete MachineDeployment %s", s.Deployment.Spec.ClusterName, s.Deployment.Name)
}

// clusterAwaited returns how much longer a missing Cluster is tolerated, because a manifest may contain it after
// the deployment.
func clusterAwaited(s snapshot) time.Duration {
	if s.Cluster != nil {
		return 0
	}
	return max(0, s.Deployment.CreationTimestamp.Add(templatesFollow).Sub(s.Now))
}

// clusterEvents returns one warning if the Cluster does not exist. [report] calls it.
func clusterEvents(s snapshot) []reconciler.Event {
	problem := clusterProblem(s)
	told := slices.ContainsFunc(s.Deployment.Status.Conditions, func(c metav1.Condition) bool { return strings.Contains(c.Message, problem) })
	if problem == "" || clusterAwaited(s) > 0 || told {
		return nil
	}
	return []reconciler.Event{reconciler.Warning(ownership.ReasonClusterMissing, "%s", problem)}
}

// bullets appends lines to a message as a list. The conditions call it.
func bullets(message string, lines []string) string {
	for _, line := range lines {
		message += "\n* " + line
	}
	return message
}
