package simulated

import (
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// newNode returns the Node of a simulated machine as it is right after `kubeadm join` and the first status update of
// its kubelet. Controllers depend on the labels, annotations, taints and conditions that kubeadm and a kubelet set.
// Create calls it when the startup duration of a machine is over.
func newNode(spec backend.MachineSpec, at time.Time) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: spec.Hostname, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH,
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": runtime.GOARCH,
	}
	if spec.Zone != "" {
		labels[corev1.LabelTopologyZone] = spec.Zone
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: spec.Hostname, Labels: labels,
			Annotations: map[string]string{
				"kubeadm.alpha.kubernetes.io/cri-socket":                 "unix:///run/containerd/containerd.sock",
				"volumes.kubernetes.io/controller-managed-attach-detach": "true",
			},
		},
		Spec: corev1.NodeSpec{ProviderID: spec.ProviderID, Taints: []corev1.Taint{clusterv1.NodeUninitializedTaint}},
		Status: corev1.NodeStatus{
			Capacity: capacity(), Allocatable: capacity(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: address(spec.Name).String()}, {Type: corev1.NodeHostName, Address: spec.Hostname},
			},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: spec.Hostname, SystemUUID: spec.Hostname, BootID: spec.Hostname, KernelVersion: "simulated", OSImage: "Simulated",
				ContainerRuntimeVersion: "simulated://" + strings.TrimPrefix(spec.Version, "v"), KubeletVersion: spec.Version,
				OperatingSystem: "linux", Architecture: runtime.GOARCH,
			},
		},
	}
	if spec.ControlPlane {
		asControlPlane(node)
	}
	now := metav1.NewTime(at)
	for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: t, Status: corev1.ConditionFalse, Reason: "Simulated", LastHeartbeatTime: now, LastTransitionTime: now,
		})
	}
	setReady(node, readiness(true), now)
	return node
}

// readiness returns the condition Ready that a healthy or an unhealthy kubelet reports.
func readiness(ready bool) corev1.NodeCondition {
	if ready {
		return corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "The simulated kubelet is healthy",
		}
	}
	return corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady",
		Message: "The annotation " + infrav1.NotReadyAfterAnnotation + " makes the simulated kubelet not ready",
	}
}

// setReady sets the condition Ready of the Node.
func setReady(node *corev1.Node, c corev1.NodeCondition, now metav1.Time) {
	c.LastHeartbeatTime, c.LastTransitionTime = now, now
	for i := range node.Status.Conditions {
		if old := &node.Status.Conditions[i]; old.Type == corev1.NodeReady {
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			*old = c
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, c)
}
