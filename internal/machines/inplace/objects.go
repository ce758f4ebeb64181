package inplace

import (
	"bytes"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Machine is a Machine with the objects that it references, as a [Caller] sends them to an extension. The functions of
// this file reduce the objects to the parts that requests contain.
type Machine struct {
	Machine        *clusterv1.Machine
	Infrastructure *unstructured.Unstructured
	// Bootstrap is nil if the Machine has no bootstrap config.
	Bootstrap *unstructured.Unstructured
}

// MachineSet is a MachineSet with the templates that it references. The MachineDeployment controller fills it in with
// the current and with the desired templates.
type MachineSet struct {
	MachineSet     *clusterv1.MachineSet
	Infrastructure *unstructured.Unstructured
	// Bootstrap is nil if the MachineSet has no bootstrap template.
	Bootstrap *unstructured.Unstructured
}

// sentMetadata returns the metadata for requests: the name and the user-defined metadata. All other metadata
// changes with every write; if requests contained it, responses could not be cached.
func sentMetadata(o metav1.Object) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), Labels: maps.Clone(o.GetLabels()), Annotations: maps.Clone(o.GetAnnotations())}
	delete(out.Annotations, corev1.LastAppliedConfigAnnotation)
	delete(out.Annotations, conversion.DataAnnotation)
	if len(out.Annotations) == 0 {
		out.Annotations = nil
	}
	return out
}

// sentMachine returns a Machine for requests, with its kind, metadata and spec.
func sentMachine(m *clusterv1.Machine) clusterv1.Machine {
	out := clusterv1.Machine{ObjectMeta: sentMetadata(m), Spec: *m.Spec.DeepCopy()}
	out.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	return out
}

// sentMachineSet returns a MachineSet for requests, with its kind, metadata and spec.
func sentMachineSet(s *clusterv1.MachineSet) clusterv1.MachineSet {
	out := clusterv1.MachineSet{ObjectMeta: sentMetadata(s), Spec: *s.Spec.DeepCopy()}
	out.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineSet"))
	return out
}

// sentObject returns a provider object for requests, with its kind, metadata and spec. The result is empty if the
// object does not exist. [Caller.UpdateMachine] and the checks send it.
func sentObject(u *unstructured.Unstructured) (runtime.RawExtension, error) {
	if u == nil {
		return runtime.RawExtension{}, nil
	}
	meta := sentMetadata(u)
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetNamespace(meta.Namespace)
	out.SetName(meta.Name)
	if len(meta.Labels) > 0 {
		out.SetLabels(meta.Labels)
	}
	if len(meta.Annotations) > 0 {
		out.SetAnnotations(meta.Annotations)
	}
	if spec, has := u.Object["spec"]; has {
		out.Object["spec"] = spec
	}
	raw, err := out.MarshalJSON()
	if err != nil {
		return runtime.RawExtension{}, fault.New(fault.Bug, "InvalidObject", "%s %s cannot be encoded for an extension", u.GetKind(), u.GetName()).From(err)
	}
	return runtime.RawExtension{Raw: bytes.TrimSpace(raw)}, nil
}

// encoded returns a typed object as JSON. The checks call it to compare objects, and to identify a failed call by its
// objects.
func encoded(o any) (runtime.RawExtension, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return runtime.RawExtension{}, fault.New(fault.Bug, "InvalidObject", "the %T cannot be encoded for an extension", o).From(err)
	}
	return runtime.RawExtension{Raw: raw}, nil
}
