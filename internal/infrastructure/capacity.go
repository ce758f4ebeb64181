package infrastructure

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The kubelet reserves these amounts by default: it evicts Pods if less memory, or less of the disk, is free. The
// capacity that the autoscaler reads for a node that does not exist yet must equal the allocatable resources of the
// later Node.
const (
	evictionMemory     = 100 << 20
	evictionDiskTenths = 1
)

// podsPerNode is the kubelet's default limit.
const podsPerNode = 110

// NodeCapacity returns the capacity of a node that may use all of a machine: its processors, and its memory and disk in
// bytes. A disk of 0 is unknown. The Local and SSH providers compute with it the capacity in the status of their
// machine templates ([TemplateReconciler]).
func NodeCapacity(processors, memory, disk int64) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(processors, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(podsPerNode, resource.DecimalSI),
	}
	if disk > 0 {
		list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(disk, resource.BinarySI)
	}
	return list
}

// SubtractReserved subtracts the amounts that the kubelet reserves, which leaves the allocatable resources. The Local
// and SSH providers call it for the status of their machine templates.
func SubtractReserved(list corev1.ResourceList) {
	if memory := list[corev1.ResourceMemory]; memory.Value() > evictionMemory {
		list[corev1.ResourceMemory] = *resource.NewQuantity(memory.Value()-evictionMemory, memory.Format)
	}
	if disk, known := list[corev1.ResourceEphemeralStorage]; known {
		list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(disk.Value()-disk.Value()/10*evictionDiskTenths, disk.Format)
	}
}
