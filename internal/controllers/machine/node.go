package machine

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// metadataOf returns the metadata that the Node receives from its Machine. [decide] compares it with the Node, and the
// action syncNode writes it.
func metadataOf(s snapshot) machines.NodeMetadata {
	return machines.NodeMetadata{
		Machine: s.Machine, AlsoLabels: s.Settings.SyncLabels, AlsoAnnotations: s.Settings.SyncAnnotations,
		Interruptible: s.Infra.Interruptible.Or(false), Outdated: outdated(s), Taints: s.Settings.TaintPropagation,
	}
}

// nodeMatters reports whether a change of a Node affects its Machine. The watch of Nodes in workload clusters filters
// with it. It ignores heartbeats; a field that the controller reads from Nodes must be compared here.
func nodeMatters(before, after client.Object) bool {
	b, a := before.(*corev1.Node), after.(*corev1.Node)
	return !maps.Equal(b.Labels, a.Labels) || !maps.Equal(b.Annotations, a.Annotations) ||
		!apiequality.Semantic.DeepEqual(b.Spec, a.Spec) || !apiequality.Semantic.DeepEqual(b.Status.NodeInfo, a.Status.NodeInfo) ||
		b.DeletionTimestamp.IsZero() != a.DeletionTimestamp.IsZero() || !slices.Equal(conditionTexts(b), conditionTexts(a)) ||
		a.Spec.Unschedulable && !slices.Equal(b.Status.VolumesAttached, a.Status.VolumesAttached)
}

// conditionTexts returns the Node's conditions without their times.
func conditionTexts(n *corev1.Node) []string {
	var out []string
	for _, c := range n.Status.Conditions {
		out = append(out, string(c.Type)+string(c.Status)+c.Message)
	}
	return out
}

// revision returns the revision of a MachineSet or MachineDeployment, or 0 if it has none.
func revision(o metav1.Object) int {
	n, err := strconv.Atoi(o.GetAnnotations()[clusterv1.RevisionAnnotation])
	if err != nil {
		return 0
	}
	return n
}

// outdated reports whether the MachineSet of the Machine is not the newest of its MachineDeployment.
func outdated(s snapshot) bool {
	return s.Deployment != nil && revision(s.Set) < revision(s.Deployment)
}

// ownerMatters selects changes of MachineSets and MachineDeployments that affect whether a Machine is up to date or
// outdated: changes of the revision and of the desired state. [Add] watches these kinds with it.
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
