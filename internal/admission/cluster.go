package admission

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// defaultCluster puts the v before the version of the topology (CL-34).
func defaultCluster(in *clusterv1.Cluster) (runtime.Object, bool) {
	version := withV(in.Spec.Topology.Version)
	if version == in.Spec.Topology.Version {
		return in, false
	}
	out := in.DeepCopy()
	out.Spec.Topology.Version = version
	return out, true
}

func validateCluster(r Request, cluster *clusterv1.Cluster) Verdict {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if r.Old == nil {
		errs = append(errs, validateClusterName(cluster.Name)...)
	}
	errs = append(errs, validateClusterShape(cluster, spec)...)
	network := spec.Child("clusterNetwork")
	errs = append(errs, validateRanges(cluster.Spec.ClusterNetwork.Pods, network.Child("pods"))...)
	errs = append(errs, validateRanges(cluster.Spec.ClusterNetwork.Services, network.Child("services"))...)
	errs = append(errs, validateTopology(cluster, r.Gates, spec.Child("topology"))...)
	return Verdict{Errors: errs}
}

// validateClusterName checks that the name can be the value of the label that every object of the cluster has (CL-30).
func validateClusterName(name string) field.ErrorList {
	if problems := validation.IsValidLabelValue(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name,
			"must be a valid label value: "+strings.Join(problems, "; "))}
	}
	return nil
}

// validateClusterShape checks that the cluster consists of something (CL-31).
func validateClusterShape(cluster *clusterv1.Cluster, path *field.Path) field.ErrorList {
	if cluster.Spec.InfrastructureRef.IsDefined() || cluster.Spec.ControlPlaneRef.IsDefined() ||
		cluster.Spec.Topology.IsDefined() {
		return nil
	}
	return field.ErrorList{field.Required(path, "one of infrastructureRef, controlPlaneRef and topology must be set")}
}

// validateRanges checks that each range of addresses is one (CL-31).
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

// validateTopology checks the gate (CL-32) and the version.
func validateTopology(cluster *clusterv1.Cluster, gates Gates, path *field.Path) field.ErrorList {
	if !cluster.Spec.Topology.IsDefined() {
		return nil
	}
	if !gates.ClusterTopology {
		return field.ErrorList{field.Forbidden(path, "can be set only when the feature gate ClusterTopology is on")}
	}
	return validateVersion(cluster.Spec.Topology.Version, path.Child("version"))
}
