package drain

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeName is the field selector for the Pods of a Node.
const nodeName = "spec.nodeName"

// ReadView reads the input of [Decide] from the workload cluster: the Pods of the Node, the DaemonSets that control
// them, and Namespaces if a rule selects by their labels. The Machine controller calls it when the deletion of a
// Machine reaches the drain, and so does `slipway hosts reboot`. Its reads need permissions in the workload cluster,
// which the kubeconfig Secret gives.
func ReadView(ctx context.Context, workload client.Reader, node *corev1.Node, rules []Rule) (View, error) {
	v := View{Node: node, Rules: rules, Orphans: map[types.NamespacedName]bool{}}
	pods := &corev1.PodList{}
	if err := workload.List(ctx, pods, client.MatchingFields{nodeName: node.Name}); err != nil {
		return v, fmt.Errorf("listing the Pods of Node %s: %w", node.Name, err)
	}
	v.Pods = pods.Items
	for i := range v.Pods {
		if err := v.lookForDaemonSet(ctx, workload, &v.Pods[i]); err != nil {
			return v, err
		}
	}
	if len(v.Pods) == 0 || !asksForNamespaces(rules) {
		return v, nil
	}
	namespaces := &corev1.NamespaceList{}
	if err := workload.List(ctx, namespaces); err != nil {
		return v, fmt.Errorf("listing Namespaces: %w", err)
	}
	v.Namespaces = map[string]labels.Set{}
	for _, n := range namespaces.Items {
		v.Namespaces[n.Name] = n.Labels
	}
	return v, nil
}

// lookForDaemonSet reads, at most once, whether the DaemonSet that controls a Pod exists.
func (v View) lookForDaemonSet(ctx context.Context, workload client.Reader, pod *corev1.Pod) error {
	name, ok := daemonSetOf(pod)
	if _, known := v.Orphans[name]; !ok || known {
		return nil
	}
	err := workload.Get(ctx, name, &appsv1.DaemonSet{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading DaemonSet %s: %w", name, err)
	}
	v.Orphans[name] = err != nil
	return nil
}

// At returns a copy of the view with the given time. The callers of [ReadView] set the time with it before [Decide].
func (v View) At(now time.Time) View {
	v.Now = now
	return v
}

// ReadVolumes reads from the workload cluster which volumes are attached to the Node. VolumeAttachments are read
// only if attachments is set (feature gate MachineWaitForVolumeDetachConsiderVolumeAttachments). The Machine controller
// calls it after the drain.
func ReadVolumes(ctx context.Context, workload client.Reader, node *corev1.Node, attachments bool) (Volumes, error) {
	v := Volumes{Node: node}
	if attachments {
		list := &storagev1.VolumeAttachmentList{}
		if err := workload.List(ctx, list); err != nil {
			return v, fmt.Errorf("listing VolumeAttachments: %w", err)
		}
		for _, a := range list.Items {
			if a.Spec.NodeName == node.Name && a.Status.Attached {
				v.Attachments = append(v.Attachments, a)
			}
		}
	}
	if v.None() {
		return v, nil
	}
	list := &corev1.PersistentVolumeList{}
	if err := workload.List(ctx, list); err != nil {
		return v, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	v.PersistentVolumes = list.Items
	return v, nil
}
