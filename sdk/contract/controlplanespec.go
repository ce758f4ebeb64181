package contract

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ControlPlaneSpec has the fields of a control plane's spec that a managed topology sets.
type ControlPlaneSpec struct {
	Version string
	// Replicas is nil if the kind has no replicas, or if another controller scales it.
	Replicas *int32
	// RolloutAfter is zero if no rollout is requested.
	RolloutAfter metav1.Time
	// Machines is nil if the control plane has no Machines.
	Machines *ControlPlaneMachines
}

// ControlPlaneMachines has the fields of the control plane's machine template.
type ControlPlaneMachines struct {
	// Infrastructure is the infrastructure machine template. Namespace and APIVersion are used only in contract
	// v1beta1.
	Infrastructure clusterv1.ContractVersionedObjectReference
	Namespace      string
	APIVersion     string

	Labels, Annotations map[string]string
	ReadinessGates      []clusterv1.MachineReadinessGate
	Deletion            clusterv1.MachineDeletionSpec
	// Taints are not supported by contract v1beta1.
	Taints []clusterv1.MachineTaint
}

// Set sets the fields in a control plane that its contract version supports. Other fields are left unchanged.
func (s ControlPlaneSpec) Set(o Object) error {
	values := map[string]any{"spec.version": s.Version}
	if s.Replicas != nil {
		values["spec.replicas"] = int64(*s.Replicas)
	}
	if !s.RolloutAfter.IsZero() {
		values[rolloutAfterPath(o.Contract)] = s.RolloutAfter.UTC().Format(time.RFC3339)
	}
	if s.Machines != nil {
		if err := s.Machines.add(values, o.Contract); err != nil {
			return err
		}
	}
	for path, value := range values {
		if err := unstructured.SetNestedField(o.Object, value, split(path)...); err != nil {
			return fmt.Errorf("field %s: %w", path, err)
		}
	}
	return nil
}

func rolloutAfterPath(v Version) string {
	if v == V1Beta1 {
		return "spec.rolloutAfter"
	}
	return "spec.rollout.after"
}

// machinesPath returns the path of the Machines' spec.
func machinesPath(v Version) string {
	if v == V1Beta1 {
		return "spec.machineTemplate"
	}
	return "spec.machineTemplate.spec"
}

func (m *ControlPlaneMachines) add(values map[string]any, v Version) error {
	at := machinesPath(v)
	values[at+".infrastructureRef"] = m.reference(v)
	addStrings(values, "spec.machineTemplate.metadata.labels", m.Labels)
	addStrings(values, "spec.machineTemplate.metadata.annotations", m.Annotations)
	if err := addList(values, at+".readinessGates", m.ReadinessGates); err != nil {
		return err
	}
	for name, seconds := range map[string]*int32{
		"nodeDrainTimeout": m.Deletion.NodeDrainTimeoutSeconds, "nodeVolumeDetachTimeout": m.Deletion.NodeVolumeDetachTimeoutSeconds,
		"nodeDeletionTimeout": m.Deletion.NodeDeletionTimeoutSeconds,
	} {
		switch {
		case seconds == nil:
		case v == V1Beta1:
			values[at+"."+name] = (time.Duration(*seconds) * time.Second).String()
		default:
			values[at+".deletion."+name+"Seconds"] = int64(*seconds)
		}
	}
	if v == V1Beta1 {
		return nil
	}
	return addList(values, at+".taints", m.Taints)
}

func (m *ControlPlaneMachines) reference(v Version) map[string]any {
	if v == V1Beta1 {
		return map[string]any{"apiVersion": m.APIVersion, "kind": m.Infrastructure.Kind, "name": m.Infrastructure.Name, "namespace": m.Namespace}
	}
	return map[string]any{"apiGroup": m.Infrastructure.APIGroup, "kind": m.Infrastructure.Kind, "name": m.Infrastructure.Name}
}

func addStrings(values map[string]any, path string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	out := map[string]any{}
	for key, value := range m {
		out[key] = value
	}
	values[path] = out
}

func addList[T any](values map[string]any, path string, list []T) error {
	if len(list) == 0 {
		return nil
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		List []T `json:"list"`
	}{list})
	values[path] = out["list"]
	return err
}

// MachineInfrastructure returns the reference of a control plane to its infrastructure machine template.
func MachineInfrastructure(o Object) Field[clusterv1.ContractVersionedObjectReference] {
	type reference struct {
		APIGroup   string `json:"apiGroup"`
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Name       string `json:"name"`
	}
	found := read[reference](o, machinesPath(o.Contract)+".infrastructureRef")
	ref, group := found.value, found.value.APIGroup
	if o.Contract == V1Beta1 {
		group = schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group
	}
	return Field[clusterv1.ContractVersionedObjectReference]{
		presence: found.presence, path: found.path, cause: found.cause,
		value: clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: ref.Kind, Name: ref.Name},
	}
}

// ControlPlaneProtected returns the paths in a control plane that only the core controllers set in a managed topology.
// Patches of a class must not change them.
func ControlPlaneProtected(v Version) [][]string {
	at := machinesPath(v)
	return [][]string{split("spec.version"), split("spec.replicas"), split(rolloutAfterPath(v)), split("spec.machineTemplate.metadata"), split(at + ".infrastructureRef")}
}
