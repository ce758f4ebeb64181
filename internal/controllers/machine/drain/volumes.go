package drain

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Volumes contains the volumes attached to a Node. After the drain, the Machine controller waits until none of them is
// [Volumes.Attached], because a machine that is deleted earlier can damage their data.
type Volumes struct {
	Node *corev1.Node
	// Attachments are the VolumeAttachments of the Node that are attached.
	Attachments []storagev1.VolumeAttachment
	// PersistentVolumes are the volumes of the workload cluster. The list is empty if nothing is attached.
	PersistentVolumes []corev1.PersistentVolume
}

// None reports whether no volume is attached. The Machine controller checks it.
func (v Volumes) None() bool {
	return len(v.Attachments) == 0 && len(v.Node.Status.VolumesAttached) == 0
}

// Attached returns the names of the volumes that must be detached before the machine may be deleted, which excludes
// the volumes of Pods that stay. PersistentVolumes are listed by name, other volumes by their VolumeAttachment or
// by the name that the Node reports. The VolumeAttachment and the CSI driver of a volume follow in parentheses.
func (v Volumes) Attached(stay []*corev1.Pod) []string {
	byName, byHandle := map[string]*corev1.PersistentVolume{}, map[string]*corev1.PersistentVolume{}
	for i := range v.PersistentVolumes {
		pv := &v.PersistentVolumes[i]
		byName[pv.Name] = pv
		if csi := pv.Spec.CSI; csi != nil {
			byHandle["kubernetes.io/csi/"+csi.Driver+"^"+csi.VolumeHandle] = pv
		}
	}
	kept := claims(stay)
	details := map[string]string{}
	add := func(pv *corev1.PersistentVolume, otherwise, detail string) {
		switch {
		case pv == nil:
			details[otherwise] = detail
		case !claimedBy(kept, pv):
			details[pv.Name] = detail
		}
	}
	for _, a := range v.Node.Status.VolumesAttached {
		add(byHandle[string(a.Name)], string(a.Name), "")
	}
	for _, a := range v.Attachments {
		if name := a.Spec.Source.PersistentVolumeName; name != nil {
			add(byName[*name], *name, attachmentDetail(a))
			continue
		}
		add(nil, a.Name, attachmentDetail(a))
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(details)) {
		out = append(out, name+details[name])
	}
	return out
}

// attachmentDetail names the object that shows why a volume stays attached, and the driver that has to detach it.
func attachmentDetail(a storagev1.VolumeAttachment) string {
	if a.Spec.Attacher == "" {
		return " (VolumeAttachment " + a.Name + ")"
	}
	return " (VolumeAttachment " + a.Name + " of CSI driver " + a.Spec.Attacher + ")"
}

// claims returns the PersistentVolumeClaims that the Pods use.
func claims(pods []*corev1.Pod) map[types.NamespacedName]bool {
	out := map[types.NamespacedName]bool{}
	for _, p := range pods {
		for _, v := range p.Spec.Volumes {
			switch {
			case v.PersistentVolumeClaim != nil:
				out[types.NamespacedName{Namespace: p.Namespace, Name: v.PersistentVolumeClaim.ClaimName}] = true
			case v.Ephemeral != nil:
				out[types.NamespacedName{Namespace: p.Namespace, Name: p.Name + "-" + v.Name}] = true
			}
		}
	}
	return out
}

func claimedBy(claims map[types.NamespacedName]bool, pv *corev1.PersistentVolume) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && claims[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}]
}

// DescribeVolumes lists volumes for a message. The Machine controller calls it for the wait after the drain.
func DescribeVolumes(volumes []string) string { return join("", volumes) }
