package machines

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
)

// InPlace returns the desired state of an existing Machine, which its owner (a MachineSet, a control plane or a
// MachinePool) applies when the Machine differs. The argument fresh is the Machine that its owner would create now,
// live is the existing Machine. Metadata and the fields that follow the template in place are taken from fresh, all
// other fields from live. Cluster API defines which fields follow in place.
func InPlace(fresh, live *clusterv1.Machine) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: *fresh.ObjectMeta.DeepCopy()}
	m.Namespace, m.Name, m.UID = live.Namespace, live.Name, live.UID
	m.Spec = clusterv1.MachineSpec{
		ClusterName: live.Spec.ClusterName, Version: live.Spec.Version, FailureDomain: live.Spec.FailureDomain,
		InfrastructureRef: live.Spec.InfrastructureRef, Bootstrap: clusterv1.Bootstrap{ConfigRef: live.Spec.Bootstrap.ConfigRef},
		ReadinessGates: fresh.Spec.ReadinessGates, MinReadySeconds: fresh.Spec.MinReadySeconds,
		Deletion: fresh.Spec.Deletion, Taints: fresh.Spec.Taints,
	}
	if !live.Spec.Bootstrap.ConfigRef.IsDefined() {
		m.Spec.Bootstrap = live.Spec.Bootstrap
	}
	return m
}

// includes reports whether a Machine has all desired metadata and fields. It may have more.
func includes(have, want *clusterv1.Machine) bool {
	return Subset(want.Labels, have.Labels) && Subset(want.Annotations, have.Annotations) &&
		slices.Contains(have.Finalizers, clusterv1.MachineFinalizer) &&
		sameSeconds(have.Spec.MinReadySeconds, want.Spec.MinReadySeconds) && SameDeletion(have.Spec.Deletion, want.Spec.Deletion) &&
		containsAll(want.Spec.ReadinessGates, have.Spec.ReadinessGates) && containsAll(want.Spec.Taints, have.Spec.Taints)
}

// Follows reports whether a Machine has everything that is desired, and nothing that the field manager applied
// earlier and no longer wants. The MachinePool controller calls it for each Machine; the check is cheap if the Machine
// is up to date.
func Follows(have, want *clusterv1.Machine, manager string) bool {
	if !includes(have, want) {
		return false
	}
	owned := kube.OwnedMetadata(have, manager)
	if !keysIn(owned.Labels, want.Labels) || !keysIn(owned.Annotations, want.Annotations) {
		return false
	}
	if len(have.Spec.ReadinessGates) == len(want.Spec.ReadinessGates) && len(have.Spec.Taints) == len(want.Spec.Taints) {
		return true
	}
	covered, err := covered(have, InPlace(want, have), manager) // other field managers may own items in these lists
	return err == nil && covered
}

// covered reports whether applying a Machine would change nothing. Finalizers and owner references are ignored.
func covered(have, want *clusterv1.Machine, manager string) (bool, error) {
	want = want.DeepCopy()
	want.Finalizers, want.OwnerReferences = have.Finalizers, have.OwnerReferences
	u, err := Applied(want)
	if err != nil {
		return false, err
	}
	return kube.IsApplied(have, manager, u.Object)
}

// Applied returns a Machine in the form in which it is applied. [MachineWriter] writes this form, and the MachinePool
// controller for Machines of pools.
func Applied(m *clusterv1.Machine) (*unstructured.Unstructured, error) {
	content := map[string]any{}
	data, err := json.Marshal(m)
	if err == nil {
		err = utiljson.Unmarshal(data, &content)
	}
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidMachine", "Machine %s cannot be encoded", m.Name).From(err)
	}
	delete(content, "status")
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	return u, nil
}

// SameDeletion reports whether two specs have the same deletion timeouts. The MachinePool controller calls it, too.
func SameDeletion(a, b clusterv1.MachineDeletionSpec) bool {
	return sameSeconds(a.NodeDrainTimeoutSeconds, b.NodeDrainTimeoutSeconds) &&
		sameSeconds(a.NodeVolumeDetachTimeoutSeconds, b.NodeVolumeDetachTimeoutSeconds) &&
		sameSeconds(a.NodeDeletionTimeoutSeconds, b.NodeDeletionTimeoutSeconds)
}

// Subset reports whether have contains all entries of want with the same values. The MachineSet controller calls it,
// too.
func Subset(want, have map[string]string) bool {
	for key, value := range want {
		if is, ok := have[key]; !ok || is != value {
			return false
		}
	}
	return true
}

// sameSeconds reports whether two durations in seconds are equal, or both unset.
func sameSeconds(a, b *int32) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func containsAll[T comparable](want, have []T) bool {
	return !slices.ContainsFunc(want, func(item T) bool { return !slices.Contains(have, item) })
}

func keysIn(keys []string, in map[string]string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { _, ok := in[key]; return !ok })
}
