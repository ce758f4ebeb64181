package simulated

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod does the work of the kubelet, or of the Pod garbage collector if the Node of the Pod does not exist. The
// simulator calls it for each change of a Pod, and of Nodes.
func (l *simulator) pod(m *simulatedCluster, i item) error {
	pods := l.client.CoreV1().Pods(i.namespace)
	pod, err := pods.Get(m.ctx, i.name, metav1.GetOptions{})
	if err != nil || pod.Spec.NodeName == "" {
		return ignoreNotFound(err)
	}
	node, err := l.client.CoreV1().Nodes().Get(m.ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node, err = nil, nil
	}
	if err != nil {
		return err
	}
	switch {
	case node == nil, pod.DeletionTimestamp != nil && isNodeReady(node):
		now, uid := int64(0), pod.UID
		return ignoreNotFound(pods.Delete(m.ctx, i.name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid},
		}))
	case pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending && isNodeReady(node):
		setRunning(pod)
		_, err := pods.UpdateStatus(m.ctx, pod, metav1.UpdateOptions{})
		return ignoreNotFound(err)
	}
	return nil
}

// node enqueues all Pods of the cluster after a Node was created, deleted or changed.
func (l *simulator) node(m *simulatedCluster, i item) {
	changed := l.Changed(i.member)
	for _, key := range m.tenant.Keys.Keys(podKeys) {
		changed(key, false)
	}
}

// isNodeReady reports whether a kubelet would run on the node.
func isNodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// setRunning sets the status of a Pod whose containers are all running.
func setRunning(pod *corev1.Pod) {
	now := metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	pod.Status.PodIP = podAddress(string(pod.UID))
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.Conditions = nil
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	pod.Status.InitContainerStatuses = statuses(pod, pod.Spec.InitContainers, corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now},
	})
	pod.Status.ContainerStatuses = statuses(pod, pod.Spec.Containers, corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: now},
	})
}

func statuses(pod *corev1.Pod, containers []corev1.Container, state corev1.ContainerState) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range containers {
		started := state.Running != nil
		out = append(out, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: "simulated:" + c.Image, Ready: true, Started: &started, State: state,
			ContainerID: fmt.Sprintf("simulated://%s/%s", strings.ReplaceAll(string(pod.UID), "-", ""), c.Name),
		})
	}
	return out
}

// ignoreNotFound ignores the errors that a concurrent client causes: the object was deleted, or replaced by another one
// with the same name.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
