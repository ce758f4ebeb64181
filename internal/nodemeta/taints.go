package nodemeta

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// syncTaints gives the Node the taints of its Machine. Those of propagation Always are kept as the Machine has
// them, and remembered in an annotation by key and effect, so that they go when the Machine drops them. Those of
// propagation OnInitialization come once, when there is no such annotation yet, and are left alone from then on.
func syncTaints(taints []clusterv1.MachineTaint, node *corev1.Node) {
	tracked, initialized := node.Annotations[clusterv1.TaintsFromMachineAnnotation]
	stays := map[string]bool{}
	var always []string
	for _, t := range taints {
		want := corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
		stays[taintID(want)] = true
		if t.Propagation == clusterv1.MachineTaintPropagationAlways {
			always = append(always, taintID(want))
			node.Spec.Taints = exactly(node.Spec.Taints, want)
		} else if !initialized {
			node.Spec.Taints = exactly(node.Spec.Taints, want)
		}
	}
	gone := strings.Split(tracked, ",")
	node.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(have corev1.Taint) bool {
		return !stays[taintID(have)] && slices.Contains(gone, taintID(have))
	})
	slices.Sort(always)
	node.Annotations[clusterv1.TaintsFromMachineAnnotation] = strings.Join(always, ",")
}

// taintID is what tells taints apart.
func taintID(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// exactly returns taints with t in the place of one of the same key and effect, else at the end.
func exactly(taints []corev1.Taint, t corev1.Taint) []corev1.Taint {
	out := slices.Clone(taints)
	if i := slices.IndexFunc(out, func(have corev1.Taint) bool { return have.MatchTaint(&t) }); i >= 0 {
		if out[i].Value != t.Value {
			out[i] = t
		}
		return out
	}
	return append(out, t)
}

func without(taints []corev1.Taint, t corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(have corev1.Taint) bool { return have.MatchTaint(&t) })
}

func with(taints []corev1.Taint, t corev1.Taint) []corev1.Taint {
	if slices.ContainsFunc(taints, func(have corev1.Taint) bool { return have.MatchTaint(&t) }) {
		return taints
	}
	return append(slices.Clone(taints), t)
}
