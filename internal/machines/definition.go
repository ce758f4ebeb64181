package machines

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines/clone"
)

// Definition is the desired state of an owner's Machines. The MachineSet and KubeadmControlPlane controllers compute it
// from their template in each reconciliation. It determines new Machines, and the fields of existing ones that follow
// the template in place ([OwnerState.InPlace]).
type Definition struct {
	Namespace, Cluster string
	// Owner is the controller of the Machines, and of their clones until a Machine takes that role.
	Owner metav1.OwnerReference
	// Labels and Annotations apply to the Machines and their clones.
	Labels, Annotations map[string]string
	// MachineAnnotations apply to the Machines only. KeptAnnotations are keys whose current values on a Machine are
	// preserved.
	MachineAnnotations map[string]string
	KeptAnnotations    []string
	// Spec is the spec of the Machines with references to templates. A Machine references the clones with its own
	// name instead.
	Spec clusterv1.MachineSpec
	// Templates are cloned for each Machine.
	Templates clone.Templates
}

// Machine returns a new Machine with this name. It includes the finalizer of the Machine controller, which would
// otherwise require another write.
func (d Definition) Machine(name string) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: name, Labels: maps.Clone(d.Labels), Annotations: maps.Clone(d.Annotations),
			OwnerReferences: []metav1.OwnerReference{d.Owner}, Finalizers: []string{clusterv1.MachineFinalizer},
		},
		Spec: *d.Spec.DeepCopy(),
	}
	if len(d.MachineAnnotations) > 0 {
		m.Annotations = merged(d.Annotations, d.MachineAnnotations)
	}
	m.Spec.ClusterName = d.Cluster
	m.Spec.InfrastructureRef = clone.Ref(d.Spec.InfrastructureRef, name)
	if d.Spec.Bootstrap.ConfigRef.IsDefined() {
		m.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: clone.Ref(d.Spec.Bootstrap.ConfigRef, name)}
	}
	return m
}

// Objects returns the objects of a new Machine in the order of their creation: the clones, then the Machine.
// [MachineWriter] and the KubeadmControlPlane controller create the objects in this order.
func (d Definition) Objects(name string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, t := range d.Templates {
		if !t.Ref.IsDefined() {
			continue
		}
		o, err := clone.New(clone.Options{
			Template: t.Object, Name: name, Cluster: d.Cluster, Owner: d.Owner, Labels: d.Labels, Annotations: d.Annotations,
		})
		if err != nil {
			return nil, fmt.Errorf("cloning %s %s: %w", t.Ref.Kind, t.Ref.Name, err)
		}
		out = append(out, o)
	}
	machine, err := Applied(d.Machine(name))
	if err != nil {
		return nil, err
	}
	return append(out, machine), nil
}

// merged returns the union of two maps. Values in b take precedence.
func merged(a, b map[string]string) map[string]string {
	out := make(map[string]string, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}
