package topology

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// LacksNodes reports whether control planes of a template have no Machines and Nodes, and therefore no replicas:
// Slipway's hosted control planes. The replicas in a topology are ignored for them, here and by the webhook of
// Clusters, because manifests written for other control planes set replicas.
func LacksNodes(template clusterv1.ClusterClassTemplateReference) bool {
	return template.GroupVersionKind().GroupKind() == schema.GroupKind{Group: hostedv1.GroupVersion.Group, Kind: "HostedControlPlaneTemplate"}
}

// controlPlane adds the control plane, the template of its Machines, and its health check to the desired state of a
// topology, for [Draft.DesiredState]. It sets the fields of Cluster API's control plane contract; spec.topology takes
// precedence over the class, and patches cannot change these fields.
func (b *builder) controlPlane() error {
	class, topology := b.Class.Spec.ControlPlane, b.Cluster.Spec.Topology.ControlPlane
	hasMachines := class.MachineInfrastructure.TemplateRef.IsDefined()
	spec := contract.ControlPlaneSpec{Version: b.Versions.ControlPlane, Replicas: topology.Replicas, RolloutAfter: topology.Rollout.After}
	source, patched := b.source(Key{Role: ControlPlane})
	if LacksNodes(source.Ref) { // it has neither field
		spec.Replicas, spec.RolloutAfter = nil, metav1.Time{}
	}
	labels, annotations := merge(class.Metadata.Labels, topology.Metadata.Labels), merge(class.Metadata.Annotations, withoutControlAnnotations(topology.Metadata.Annotations))
	if hasMachines {
		spec.Machines = &contract.ControlPlaneMachines{
			Infrastructure: b.template(Key{Role: controlPlaneMachines}), Namespace: b.Cluster.Namespace, APIVersion: class.MachineInfrastructure.TemplateRef.APIVersion,
			Labels: b.labels(source.Key, labels), Annotations: annotations,
			ReadinessGates: firstList(topology.ReadinessGates, class.ReadinessGates),
			Taints:         firstList(topology.Taints, class.Taints),
			Deletion:       deletion(clusterv1.MachineDeletionSpec(topology.Deletion), clusterv1.MachineDeletionSpec(class.Deletion)),
		}
	}
	want := b.newObject(source, patched, labels, annotations)
	protect(want, source.Template)
	if err := spec.Set(contract.Object{Unstructured: want, Contract: source.Template.Contract}); err != nil {
		return fault.New(fault.Invalid, "ControlPlaneTemplateInvalid", "%s %s of ClusterClass %s does not follow the contract: %s",
			source.Ref.Kind, source.Ref.Name, b.Class.Name, err)
	}
	want.SetOwnerReferences(b.ownerReference())
	if err := b.sameKind(keyed{source.Key, want}, b.live(source.Key)); err != nil {
		return err
	}
	b.add(keyed{source.Key, want}, b.live(source.Key))
	if !hasMachines {
		return nil
	}
	return b.controlPlaneHealth(want.GetName())
}

// protect resets the fields that the topology controller owns to their values in the template of the class, so that no
// patch changes them.
func protect(o *unstructured.Unstructured, template contract.Object) {
	content, _ := contract.Template(template)
	from := map[string]any{"spec": content.Spec}
	for _, path := range contract.ControlPlaneProtected(template.Contract) {
		remove(o.Object, path)
		value, found, err := unstructured.NestedFieldCopy(from, path...)
		if err != nil || !found {
			continue
		}
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			continue // an element of the path is not an object, so there is nothing to protect
		}
	}
}

// remove removes a field, and the parent objects that become empty.
func remove(object map[string]any, path []string) {
	unstructured.RemoveNestedField(object, path...)
	for n := len(path) - 1; n > 1; n-- {
		parent, found, err := unstructured.NestedMap(object, path[:n]...)
		if err != nil || !found || len(parent) > 0 {
			return
		}
		unstructured.RemoveNestedField(object, path[:n]...)
	}
}

// firstNonNil returns the first value that is not nil. The [builder] calls it for fields of workers that both the
// topology and the class can set.
func firstNonNil[T any](values ...*T) *T {
	for _, value := range values {
		if value != nil {
			return value
		}
	}
	return nil
}

// firstList returns the first list that is not nil, even if it is empty.
func firstList[T any](lists ...[]T) []T {
	for _, list := range lists {
		if list != nil {
			return list
		}
	}
	return nil
}
