package machine

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// nodeReady computes the NodeReady condition of a Machine from the kubelet's Ready condition, for the table in
// conditions.go. The reasons, and the conditions of the Node that count, are defined by Cluster API.
func nodeReady(n *corev1.Node) condition.Result {
	c := conditionOf(n, corev1.NodeReady)
	switch {
	case c == nil:
		return condition.Unknown(clusterv1.MachineNodeReadyUnknownReason, "Node.Ready: Condition not yet reported")
	case c.Status == corev1.ConditionTrue:
		return condition.True(clusterv1.MachineNodeReadyReason)
	case c.Status == corev1.ConditionFalse:
		return condition.False(clusterv1.MachineNodeNotReadyReason, "* Node.Ready: "+c.Message+withoutNetwork(c))
	}
	return condition.Unknown(clusterv1.MachineNodeReadyUnknownReason, "* Node.Ready: "+c.Message)
}

// nodeHealthy computes the NodeHealthy condition: True if the Node is ready and reports no pressure. The table in
// conditions.go calls it, too.
func nodeHealthy(n *corev1.Node) condition.Result {
	var bad, unknown []string
	for _, t := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		good := corev1.ConditionFalse
		if t == corev1.NodeReady {
			good = corev1.ConditionTrue
		}
		c := conditionOf(n, t)
		switch {
		case c == nil:
			unknown = append(unknown, fmt.Sprintf("* Node.%s: Condition not yet reported", t))
		case c.Status == good:
		case c.Status == corev1.ConditionUnknown:
			unknown = append(unknown, fmt.Sprintf("* Node.%s: %s", t, c.Message))
		default:
			bad = append(bad, fmt.Sprintf("* Node.%s: %s%s", t, c.Message, withoutNetwork(c)))
		}
	}
	switch {
	case len(bad) > 0:
		return condition.False(clusterv1.MachineNodeNotHealthyReason, strings.Join(append(bad, unknown...), "\n"))
	case len(unknown) > 0:
		return condition.Unknown(clusterv1.MachineNodeHealthUnknownReason, strings.Join(unknown, "\n"))
	}
	return condition.True(clusterv1.MachineNodeHealthyReason)
}

// withoutNetwork returns a hint for a Node that reports an uninitialized CNI plugin.
func withoutNetwork(c *corev1.NodeCondition) string {
	if !strings.Contains(c.Message, "cni plugin not initialized") {
		return ""
	}
	return "; a network for Pods (CNI) has yet to be installed in the workload cluster, as with Slipway's classes by the label slipway.dev/cni: flannel on the Cluster"
}

func conditionOf(n *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == t {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}
