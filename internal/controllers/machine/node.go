package machine

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/slipwayhq/slipway/internal/nodemeta"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// isSynced reports whether the Node is as sync makes it.
func isSynced(s Snapshot, node *corev1.Node) bool {
	after := node.DeepCopy()
	syncMetadata(s, after)
	return maps.Equal(after.Annotations, node.Annotations) && maps.Equal(after.Labels, node.Labels) &&
		apiequality.Semantic.DeepEqual(after.Spec.Taints, node.Spec.Taints)
}

// syncMetadata makes the Node say which Machine it is of, gives it the Machine's labels and
// annotations, and lets pods come.
//
// What came from the Machine is remembered in two annotations, so that it goes when
// the Machine drops it and nothing else does. The uninitialized taint goes in the
// same patch as the first labels come, since a pod that needs them must not be
// placed earlier.
func syncMetadata(s Snapshot, node *corev1.Node) {
	m := s.Machine
	node.Labels, node.Annotations = maps.Clone(node.Labels), maps.Clone(node.Annotations)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	labels, annotations := nodemeta.Labels(m.Labels, s.Settings.SyncLabels...), nodemeta.Annotations(m.Annotations, s.Settings.SyncAnnotations...)
	drop(node.Labels, labels, node.Annotations[clusterv1.LabelsFromMachineAnnotation])
	drop(node.Annotations, annotations, node.Annotations[clusterv1.AnnotationsFromMachineAnnotation])
	maps.Copy(node.Labels, labels)
	maps.Copy(node.Annotations, annotations)
	node.Annotations[clusterv1.LabelsFromMachineAnnotation] = keys(labels)
	node.Annotations[clusterv1.AnnotationsFromMachineAnnotation] = keys(annotations)
	node.Annotations[clusterv1.ClusterNameAnnotation] = m.Spec.ClusterName
	node.Annotations[clusterv1.ClusterNamespaceAnnotation] = m.Namespace
	node.Annotations[clusterv1.MachineAnnotation] = m.Name
	if owner := metav1.GetControllerOf(m); owner != nil {
		node.Annotations[clusterv1.OwnerKindAnnotation], node.Annotations[clusterv1.OwnerNameAnnotation] = owner.Kind, owner.Name
	}
	if s.Infra.Interruptible.Or(false) {
		node.Labels[clusterv1.InterruptibleLabel] = ""
	}
	node.Spec.Taints = without(node.Spec.Taints, clusterv1.NodeUninitializedTaint)
	if outdated(s) {
		node.Spec.Taints = with(node.Spec.Taints, clusterv1.NodeOutdatedRevisionTaint)
	} else {
		node.Spec.Taints = without(node.Spec.Taints, clusterv1.NodeOutdatedRevisionTaint)
	}
	if s.Settings.TaintPropagation {
		syncTaints(m.Spec.Taints, node)
	}
}

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

// drop removes what came from the Machine before and does not any more.
func drop(have, want map[string]string, tracked string) {
	for _, key := range strings.Split(tracked, ",") {
		if _, stays := want[key]; !stays {
			delete(have, key)
		}
	}
}

func keys(m map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ",")
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

// nodeMatters drops heartbeats: what of a Node a Machine looks at.
func nodeMatters(before, after client.Object) bool {
	b, a := before.(*corev1.Node), after.(*corev1.Node)
	return !maps.Equal(b.Labels, a.Labels) || !maps.Equal(b.Annotations, a.Annotations) ||
		!apiequality.Semantic.DeepEqual(b.Spec, a.Spec) || !apiequality.Semantic.DeepEqual(b.Status.NodeInfo, a.Status.NodeInfo) ||
		b.DeletionTimestamp.IsZero() != a.DeletionTimestamp.IsZero() || !slices.Equal(conditionTexts(b), conditionTexts(a)) ||
		a.Spec.Unschedulable && !slices.Equal(b.Status.VolumesAttached, a.Status.VolumesAttached)
}

// conditionTexts is what the Node's conditions say, without the times.
func conditionTexts(n *corev1.Node) []string {
	var out []string
	for _, c := range n.Status.Conditions {
		out = append(out, string(c.Type)+string(c.Status)+c.Message)
	}
	return out
}

// revision of a MachineSet or MachineDeployment; 0 where there is none.
func revision(o metav1.Object) int {
	n, err := strconv.Atoi(o.GetAnnotations()[clusterv1.RevisionAnnotation])
	if err != nil {
		return 0
	}
	return n
}

// outdated reports whether the MachineSet of the Machine is not the newest of its MachineDeployment.
func outdated(s Snapshot) bool {
	return s.Deployment != nil && revision(s.Set) < revision(s.Deployment)
}

// ownerMatters lets through of MachineSets and MachineDeployments what a Machine is judged by: the revision, and
// what is asked for.
func ownerMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if revision(e.ObjectOld) != revision(e.ObjectNew) {
			return true
		}
		switch after := e.ObjectNew.(type) {
		case *clusterv1.MachineSet:
			before := e.ObjectOld.(*clusterv1.MachineSet)
			return !sameController(before, after) || len(rollout.Differences(before.Spec.Template, after.Spec.Template)) > 0
		case *clusterv1.MachineDeployment:
			before := e.ObjectOld.(*clusterv1.MachineDeployment)
			return !before.Spec.Rollout.After.Equal(&after.Spec.Rollout.After) ||
				len(rollout.Differences(before.Spec.Template, after.Spec.Template)) > 0
		}
		return false
	}}
}

func sameController(a, b metav1.Object) bool {
	before, after := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	return (before == nil) == (after == nil) && (before == nil || before.UID == after.UID)
}
