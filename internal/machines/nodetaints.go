package machines

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// syncTaints sets the taints of the Machine on its Node. [NodeMetadata.Sync] calls it if the feature gate
// MachineTaintPropagation is enabled. Taints with propagation Always follow the Machine; their keys and effects are
// recorded in an annotation of Cluster API, so that they are removed when the Machine no longer has them.
// Taints with propagation OnInitialization are set once, while the annotation does not exist yet, and are never
// changed afterwards.
func syncTaints(taints []clusterv1.MachineTaint, node *corev1.Node) {
	tracked, initialized := node.Annotations[clusterv1.TaintsFromMachineAnnotation]
	stays := map[string]bool{}
	var always []string
	for _, t := range taints {
		want := corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
		stays[taintID(want)] = true
		if t.Propagation == clusterv1.MachineTaintPropagationAlways {
			always = append(always, taintID(want))
			node.Spec.Taints = replaceTaint(node.Spec.Taints, want)
		} else if !initialized {
			node.Spec.Taints = replaceTaint(node.Spec.Taints, want)
		}
	}
	gone := strings.Split(tracked, ",")
	node.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(have corev1.Taint) bool {
		return !stays[taintID(have)] && slices.Contains(gone, taintID(have))
	})
	slices.Sort(always)
	node.Annotations[clusterv1.TaintsFromMachineAnnotation] = strings.Join(always, ",")
}

// taintID returns the key and effect, which identify a taint.
func taintID(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// replaceTaint returns the taints with t in place of the taint with the same key and effect, or appended.
func replaceTaint(taints []corev1.Taint, t corev1.Taint) []corev1.Taint {
	out := slices.Clone(taints)
	if i := slices.IndexFunc(out, func(have corev1.Taint) bool { return have.MatchTaint(&t) }); i >= 0 {
		if out[i].Value != t.Value {
			out[i] = t
		}
		return out
	}
	return append(out, t)
}

// without returns the taints except for the one with the key and effect of t.
func without(taints []corev1.Taint, t corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(have corev1.Taint) bool { return have.MatchTaint(&t) })
}

// with returns the taints, and t if none has its key and effect.
func with(taints []corev1.Taint, t corev1.Taint) []corev1.Taint {
	if slices.ContainsFunc(taints, func(have corev1.Taint) bool { return have.MatchTaint(&t) }) {
		return taints
	}
	return append(slices.Clone(taints), t)
}
