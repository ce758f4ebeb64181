package describe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Ref names an object in the namespace of the cluster.
type Ref struct{ Group, Kind, Name string }

// Snapshot has all objects of one cluster that commands display or wait for. [Read] reads it.
type Snapshot struct {
	// Now is the time of the read.
	Now         time.Time
	Cluster     *clusterv1.Cluster
	Deployments []clusterv1.MachineDeployment
	Sets        []clusterv1.MachineSet
	Pools       []clusterv1.MachinePool
	Machines    []clusterv1.Machine
	// Checks are the MachineHealthChecks of the cluster.
	Checks []clusterv1.MachineHealthCheck

	// Objects are the provider objects that exist.
	Objects map[Ref]*unstructured.Unstructured
	// Hosts are the SSHHosts of the SSHMachines among the objects, which are in namespaces of the operator.
	Hosts map[Ref]*unstructured.Unstructured
	// Missing has the reasons why referenced objects are not in Objects.
	Missing map[Ref]string
	// Unread are the referenced objects whose read failed, so that it is unknown whether they exist. [Read] fails instead.
	Unread map[Ref]bool
	// ResourceSets are the names of the ClusterResourceSets that apply to the cluster.
	ResourceSets []string
	// Applied has the ClusterResourceSets that are completely applied to this cluster. Their issues concern other
	// clusters.
	Applied map[string]bool
	// Hooks are the events about Runtime Extension handlers that block the topology, as conditions.
	Hooks []Condition
}

func refOf(r clusterv1.ContractVersionedObjectReference) Ref {
	return Ref{Group: r.APIGroup, Kind: r.Kind, Name: r.Name}
}

// refs returns the references of the core objects to provider objects, optionally including templates, sorted and
// without duplicates. [Read] reads these objects.
func (s Snapshot) refs(templates bool) []Ref {
	all := []clusterv1.ContractVersionedObjectReference{s.Cluster.Spec.InfrastructureRef, s.Cluster.Spec.ControlPlaneRef}
	machine := func(spec clusterv1.MachineSpec) {
		all = append(all, spec.InfrastructureRef, spec.Bootstrap.ConfigRef)
	}
	for _, m := range s.Machines {
		machine(m.Spec)
	}
	for _, p := range s.Pools {
		machine(p.Spec.Template.Spec)
	}
	if templates {
		for _, d := range s.Deployments {
			machine(d.Spec.Template.Spec)
		}
		for _, m := range s.Sets {
			machine(m.Spec.Template.Spec)
		}
	}
	var refs []Ref
	for _, r := range all {
		if r.IsDefined() {
			refs = append(refs, refOf(r))
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(refs)
}

// controlPlane returns the object referenced by the Cluster's controlPlaneRef, or nil.
func (s Snapshot) controlPlane() *unstructured.Unstructured {
	return s.Objects[refOf(s.Cluster.Spec.ControlPlaneRef)]
}

// controlPlaneTemplate returns the reference to the infrastructure machine template of the control plane, from either
// contract version. ok is false for a control plane without Machines. [Read] and [Build] call it.
func (s Snapshot) controlPlaneTemplate() (ref Ref, ok bool) {
	cp := s.controlPlane()
	if cp == nil {
		return Ref{}, false
	}
	for _, path := range [][]string{
		{"spec", "machineTemplate", "spec", "infrastructureRef"},
		{"spec", "machineTemplate", "infrastructureRef"},
	} {
		m, found, err := unstructured.NestedStringMap(cp.Object, path...)
		if err != nil || !found || m["name"] == "" {
			continue
		}
		group := m["apiGroup"]
		if group == "" {
			group, _, _ = strings.Cut(m["apiVersion"], "/")
		}
		return Ref{Group: group, Kind: m["kind"], Name: m["name"]}, true
	}
	return Ref{}, false
}

// ownedBy reports whether an object of the kind and name is the controller owner of o. If o has no controller owner
// yet, the label decides. [Build] places MachineSets and Machines in the tree with it.
func ownedBy(o metav1.Object, kind, name, label string) bool {
	if c := metav1.GetControllerOf(o); c != nil {
		return c.Kind == kind && c.Name == name
	}
	return o.GetLabels()[label] == name
}
