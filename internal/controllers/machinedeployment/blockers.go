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
	"github.com/slipwayhq/slipway/internal/inplace"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
)

// creationBlockers say why Machines that are missing are not created, or not handed over to be updated in place, a line each: a
// template that does not exist, or what the MachineSets say below the first line of their condition ScalingUp, those that hand over of
// ScalingDown; preflight checks above all. A set that was not reconciled yet says nothing.
func creationBlockers(s Snapshot) []string {
	if problem := scalingProblem(s); problem != "" {
		return []string{problem}
	}
	var out []string
	for i := range s.Sets {
		set := &s.Sets[i]
		blocked := clusterv1.MachineSetScalingUpCondition
		if inplace.MoveTo(set) != "" {
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

// scalingProblem is why the deployment creates no Machines whatever its MachineSets say: its Cluster, the operator's policy, or a
// template. Empty: no reason.
func scalingProblem(s Snapshot) string {
	return cmp.Or(clusterProblem(s), s.Policy.DeniedReplicas(ptr.Deref(s.Deployment.Spec.Replicas, 0)), templateProblem(s))
}

// clusterProblem reports a Cluster that does not exist; empty: it exists.
func clusterProblem(s Snapshot) string {
	switch {
	case s.Cluster != nil || !s.Deployment.DeletionTimestamp.IsZero():
		return ""
	case clusterAwaited(s) > 0:
		return fmt.Sprintf("Cluster %s has yet to be created", s.Deployment.Spec.ClusterName)
	}
	return fmt.Sprintf("Cluster %s does not exist: create it, or delete MachineDeployment %s", s.Deployment.Spec.ClusterName, s.Deployment.Name)
}

// clusterAwaited is how much longer a Cluster that does not exist is no problem yet: in a manifest it may stand behind the deployment.
func clusterAwaited(s Snapshot) time.Duration {
	if s.Cluster != nil {
		return 0
	}
	return max(0, s.Deployment.CreationTimestamp.Add(templatesFollow).Sub(s.Now))
}

// clusterEvents warn once that the Cluster does not exist.
func clusterEvents(s Snapshot) []loop.Event {
	problem := clusterProblem(s)
	told := slices.ContainsFunc(s.Deployment.Status.Conditions, func(c metav1.Condition) bool { return strings.Contains(c.Message, problem) })
	if problem == "" || clusterAwaited(s) > 0 || told {
		return nil
	}
	return []loop.Event{loop.Warning(ownership.ReasonClusterMissing, "%s", problem)}
}

// bullets lists lines below a message.
func bullets(message string, lines []string) string {
	for _, line := range lines {
		message += "\n* " + line
	}
	return message
}
