package machines

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines/clone"
)

// Definition is what an owner wants of its Machines now.
type Definition struct {
	Namespace, Cluster string
	// Owner controls the Machines, and their clones until a Machine does.
	Owner metav1.OwnerReference
	// Labels and Annotations of the Machines and of their clones.
	Labels, Annotations map[string]string
	// MachineAnnotations are those of the Machines alone. KeptAnnotations are keys that a Machine keeps as it has them.
	MachineAnnotations map[string]string
	KeptAnnotations    []string
	// Spec of the Machines. Its references are those of templates: a Machine refers to the clone of its own name.
	Spec clusterv1.MachineSpec
	// Templates that are cloned for each Machine.
	Templates clone.Templates
}

// Machine is the Machine of that name as it is created. It has the finalizer of the Machine controller, which would need a write
// of its own otherwise.
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

// Objects are the objects of a new Machine in the order in which they are created: the clones, then the Machine.
func (d Definition) Objects(name string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, t := range d.Templates {
		if !t.Ref.IsDefined() {
			continue
		}
		o, err := clone.New(clone.Request{
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

// merged are the annotations of both; those of the second take precedence.
func merged(a, b map[string]string) map[string]string {
	out := make(map[string]string, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}
