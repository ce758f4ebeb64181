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

	"github.com/slipwayhq/slipway/internal/fault"
)

// conversionData is the annotation in which an older version of the API keeps the fields it does not have.
const conversionData = "cluster.x-k8s.io/conversion-data"

// Machine is a Machine and the objects that it refers to.
type Machine struct {
	Machine        *clusterv1.Machine
	Infrastructure *unstructured.Unstructured
	// Bootstrap is nil where the Machine has no bootstrap config.
	Bootstrap *unstructured.Unstructured
}

// MachineSet is a MachineSet and the templates that it refers to.
type MachineSet struct {
	MachineSet     *clusterv1.MachineSet
	Infrastructure *unstructured.Unstructured
	// Bootstrap is nil where the MachineSet has no bootstrap template.
	Bootstrap *unstructured.Unstructured
}

// sentMetadata is what requests hold of the metadata of an object: what names it and what people wrote. The rest changes with every
// write, and an extension that depended on it would never have an answer that can be kept.
func sentMetadata(o metav1.Object) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), Labels: maps.Clone(o.GetLabels()), Annotations: maps.Clone(o.GetAnnotations())}
	delete(out.Annotations, corev1.LastAppliedConfigAnnotation)
	delete(out.Annotations, conversionData)
	if len(out.Annotations) == 0 {
		out.Annotations = nil
	}
	return out
}

func sentMachine(m *clusterv1.Machine) clusterv1.Machine {
	out := clusterv1.Machine{ObjectMeta: sentMetadata(m), Spec: *m.Spec.DeepCopy()}
	out.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	return out
}

func sentMachineSet(s *clusterv1.MachineSet) clusterv1.MachineSet {
	out := clusterv1.MachineSet{ObjectMeta: sentMetadata(s), Spec: *s.Spec.DeepCopy()}
	out.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineSet"))
	return out
}

// sentObject is an object of a provider: its kind, metadata and spec. Of one that does not exist nothing is sent.
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

// encoded returns a typed object as JSON.
func encoded(o any) (runtime.RawExtension, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return runtime.RawExtension{}, fault.New(fault.Bug, "InvalidObject", "the %T cannot be encoded for an extension", o).From(err)
	}
	return runtime.RawExtension{Raw: raw}, nil
}
