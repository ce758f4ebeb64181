package admission

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// defaultCluster adds the leading v to the version of the topology, and sets variables that have defaults in the class.
// [Default] calls it on create and update.
func defaultCluster(r Request, cluster *clusterv1.Cluster) {
	topology := &cluster.Spec.Topology
	topology.Version = withV(topology.Version)
	if class := r.Related.Class; r.Gates.ClusterTopology && topology.IsDefined() && class != nil && IsReconciled(class) {
		r.Related.Definitions.Default(topology)
	}
}

func topologyRequest(r Request, cluster *clusterv1.Cluster) TopologyRequest {
	old, _ := r.Old.(*clusterv1.Cluster)
	return TopologyRequest{
		New: cluster, Old: old, Class: r.Related.Class, Definitions: r.Related.Definitions, OldClass: r.Related.OldClass, Upgrading: r.Related.Upgrading,
	}
}

// validateCluster validates a Cluster for [Validate], on create and update. Rules for its topology are in topology.go.
func validateCluster(r Request, cluster *clusterv1.Cluster) Response {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if r.Old == nil {
		errs = append(errs, validateClusterName(cluster.Name)...)
	}
	errs = append(errs, validateClusterShape(cluster, r.Gates, spec)...)
	if old, isUpdate := r.Old.(*clusterv1.Cluster); isUpdate {
		errs = append(errs, validateRequiredReferences(old, cluster, r.Gates)...)
	}
	network := spec.Child("clusterNetwork")
	errs = append(errs, validateRanges(cluster.Spec.ClusterNetwork.Pods, network.Child("pods"))...)
	errs = append(errs, validateRanges(cluster.Spec.ClusterNetwork.Services, network.Child("services"))...)
	topology := validateTopology(r, cluster, spec.Child("topology"))
	warnings := append(overlapWarning(r, cluster), topology.Warnings...)
	if old, isUpdate := r.Old.(*clusterv1.Cluster); r.Related.RunsOnHost && (!isUpdate || old.Spec.Topology.Version != cluster.Spec.Topology.Version) {
		warnings = append(warnings, unavailableVersionWarning(r, cluster.Spec.Topology.Version, spec.Child("topology", "version"))...)
	}
	return Response{Errors: append(errs, topology.Errors...), Warnings: warnings}
}

// overlapWarning warns about overlapping CIDR blocks for Pods and Services. They are not rejected, because some add-ons
// may support them.
func overlapWarning(r Request, cluster *clusterv1.Cluster) []string {
	network := cluster.Spec.ClusterNetwork
	if old, isUpdate := r.Old.(*clusterv1.Cluster); isUpdate && equality.Semantic.DeepEqual(old.Spec.ClusterNetwork, network) {
		return nil
	}
	for _, pods := range network.Pods.CIDRBlocks {
		for _, services := range network.Services.CIDRBlocks {
			p, podErr := netip.ParsePrefix(pods)
			s, serviceErr := netip.ParsePrefix(services)
			if podErr == nil && serviceErr == nil && p.Overlaps(s) {
				return []string{fmt.Sprintf("spec.clusterNetwork: the range of Pods %s overlaps the range of Services %s, so that a Service may have the address of a Pod; choose ranges that do not overlap", pods, services)}
			}
		}
	}
	return nil
}

// validateClusterName checks that the name is a valid label value, because all objects of the cluster have it as a
// label.
func validateClusterName(name string) field.ErrorList {
	if problems := validation.IsValidLabelValue(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name,
			"must be a valid label value: "+strings.Join(problems, "; "))}
	}
	return nil
}

// validateClusterShape checks that at least one of infrastructure, control plane and topology is set.
func validateClusterShape(cluster *clusterv1.Cluster, gates Gates, path *field.Path) field.ErrorList {
	if cluster.Spec.InfrastructureRef.IsDefined() || cluster.Spec.ControlPlaneRef.IsDefined() ||
		cluster.Spec.Topology.IsDefined() {
		return nil
	}
	if gates.ClusterTopology {
		return field.ErrorList{field.Required(path, "one of infrastructureRef, controlPlaneRef and topology must be set")}
	}
	return field.ErrorList{field.Required(path, "infrastructureRef or controlPlaneRef must be set")}
}

// validateRequiredReferences checks that no reference is removed that is necessary to delete the Cluster's objects.
func validateRequiredReferences(old, cluster *clusterv1.Cluster, gates Gates) field.ErrorList {
	before, now := old.Spec, cluster.Spec
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if before.InfrastructureRef.IsDefined() && !now.InfrastructureRef.IsDefined() {
		errs = append(errs, field.Forbidden(spec.Child("infrastructureRef"),
			"cannot be removed: the infrastructure would be orphaned when the Cluster is deleted"))
	}
	if before.ControlPlaneRef.IsDefined() && !now.ControlPlaneRef.IsDefined() {
		errs = append(errs, field.Forbidden(spec.Child("controlPlaneRef"),
			"cannot be removed: the control plane would be orphaned when the Cluster is deleted"))
	}
	if gates.ClusterTopology && before.Topology.IsDefined() && !now.Topology.IsDefined() {
		errs = append(errs, field.Forbidden(spec.Child("topology"), "cannot be removed from an existing Cluster"))
	}
	if gates.ClusterTopology && before.Topology.IsDefined() && now.Topology.IsDefined() {
		errs = append(errs, validateSetByTopology(before.InfrastructureRef, now.InfrastructureRef, spec.Child("infrastructureRef"))...)
		errs = append(errs, validateSetByTopology(before.ControlPlaneRef, now.ControlPlaneRef, spec.Child("controlPlaneRef"))...)
	}
	return errs
}

// validateSetByTopology checks that a reference set by the topology controller is not changed, because the Cluster
// would lose the referenced object. Removal is reported as a different error.
func validateSetByTopology(before, now clusterv1.ContractVersionedObjectReference, path *field.Path) field.ErrorList {
	if !before.IsDefined() || !now.IsDefined() || before == now {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("cannot be changed, because the topology has set it to %s %s in group %s: change spec.topology instead",
		before.Kind, before.Name, before.APIGroup))}
}

// validateRanges checks that the CIDR blocks are valid.
func validateRanges(ranges clusterv1.NetworkRanges, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, block := range ranges.CIDRBlocks {
		if _, err := netip.ParsePrefix(block); err != nil {
			errs = append(errs, field.Invalid(path.Child("cidrBlocks").Index(i), block,
				"must be a range of addresses in CIDR notation, for example 172.31.128.0/17"))
		}
	}
	return errs
}

// validateTopology checks the feature gate, and the topology with its class.
func validateTopology(r Request, cluster *clusterv1.Cluster, path *field.Path) Response {
	if !cluster.Spec.Topology.IsDefined() {
		return Response{}
	}
	if !r.Gates.ClusterTopology {
		return Response{Errors: field.ErrorList{field.Forbidden(path,
			"the feature gate ClusterTopology is disabled in this manager: start it with --feature-gates=ClusterTopology=true, or set controlPlaneRef and infrastructureRef instead")}}
	}
	out := validateManagedTopology(topologyRequest(r, cluster))
	out.Errors = append(out.Errors, validateTopologyTaints(cluster.Spec.Topology, r.Gates, path)...)
	return out
}
