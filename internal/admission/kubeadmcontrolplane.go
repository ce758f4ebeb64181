package admission

import (
	"cmp"
	"fmt"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/naming"
)

// defaultKubeadmControlPlane sets replicas, the leading v of the version, and the rollout strategy, for [Default].
func defaultKubeadmControlPlane(plane *controlplanev1.KubeadmControlPlane) {
	defaultControlPlaneStrategy(&plane.Spec.Rollout.Strategy)
	if plane.Spec.Replicas == nil {
		plane.Spec.Replicas = new(int32(1))
	}
	plane.Spec.Version = withV(plane.Spec.Version)
}

// defaultKubeadmControlPlaneTemplate sets the rollout strategy, and aligns the template with the stored one in dry runs
// of the topology controller. [Default] calls it.
func defaultKubeadmControlPlaneTemplate(r Request, template *controlplanev1.KubeadmControlPlaneTemplate) {
	defaultControlPlaneStrategy(&template.Spec.Template.Spec.Rollout.Strategy)
	if old, ok := r.Old.(*controlplanev1.KubeadmControlPlaneTemplate); ok && isTopologyDryRun(r) {
		alignDefaults(&template.Spec.Template.Spec.KubeadmConfigSpec, &old.Spec.Template.Spec.KubeadmConfigSpec)
	}
}

// defaultControlPlaneStrategy sets the default strategy, which creates a new Machine before it deletes an old one.
func defaultControlPlaneStrategy(s *controlplanev1.KubeadmControlPlaneRolloutStrategy) {
	s.Type = cmp.Or(s.Type, controlplanev1.RollingUpdateStrategyType)
	if s.Type == controlplanev1.RollingUpdateStrategyType && s.RollingUpdate.MaxSurge == nil {
		s.RollingUpdate.MaxSurge = new(intstr.FromInt32(1))
	}
}

// validateKubeadmControlPlane validates a KubeadmControlPlane and changes of it for [Validate].
func validateKubeadmControlPlane(r Request, plane *controlplanev1.KubeadmControlPlane) Response {
	spec := field.NewPath("spec")
	s := plane.Spec
	old, _ := r.Old.(*controlplanev1.KubeadmControlPlane)
	errs := validateControlPlaneReplicas(r, s, old)
	if s.Version == "" {
		errs = append(errs, field.Required(spec.Child("version"), "set a Kubernetes version, for example v1.36.3"))
	}
	errs = append(errs, validateVersion(s.Version, spec.Child("version"))...)
	errs = append(errs, s.MachineTemplate.ObjectMeta.Validate(spec.Child("machineTemplate", "metadata"))...)
	errs = append(errs, validateTaints(s.MachineTemplate.Spec.Taints, taintRules{controlPlane: true, gates: r.Gates},
		spec.Child("machineTemplate", "spec", "taints"))...)
	errs = append(errs, validateControlPlaneStrategy(s.Rollout.Strategy, s.Replicas, spec.Child("rollout", "strategy"))...)
	errs = append(errs, validateControlPlaneNaming(s.MachineNaming, spec.Child("machineNaming", "template"))...)
	errs = append(errs, validateControlPlaneConfig(r, &s.KubeadmConfigSpec, spec.Child("kubeadmConfigSpec"))...)
	settings := &kubeadmSettings{&s.KubeadmConfigSpec, s.Rollout.Before.CertificatesExpiryDays}
	if old == nil {
		return Response{Errors: append(errs, validateConsistency(settings, nil, spec)...)}
	}
	errs = append(errs, validateConsistency(settings, &kubeadmSettings{&old.Spec.KubeadmConfigSpec, old.Spec.Rollout.Before.CertificatesExpiryDays}, spec)...)
	return Response{Errors: append(errs, validateControlPlaneChange(old, plane)...)}
}

// validateControlPlaneReplicas validates the number of replicas, including the quorum of etcd.
func validateControlPlaneReplicas(r Request, s controlplanev1.KubeadmControlPlaneSpec, old *controlplanev1.KubeadmControlPlane) field.ErrorList {
	path := field.NewPath("spec", "replicas")
	if s.Replicas == nil {
		return field.ErrorList{field.Required(path, "set the number of control plane Machines")}
	}
	n := *s.Replicas
	var before *int32
	if old != nil {
		before = old.Spec.Replicas
	}
	return append(validateReplicas(r, s.Replicas, before, path), validateControlPlaneCount(n, s, path)...)
}

// validateControlPlaneCount rejects 0, and an even number of etcd members.
func validateControlPlaneCount(n int32, s controlplanev1.KubeadmControlPlaneSpec, path *field.Path) field.ErrorList {
	if n == 0 {
		return field.ErrorList{field.Forbidden(path, "cannot be 0: a cluster without a control plane Machine loses its etcd; delete the Cluster instead")}
	}
	if external := s.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined(); n > 0 && n%2 == 0 && !external {
		return field.ErrorList{field.Forbidden(path,
			fmt.Sprintf("cannot be even with managed etcd: %d members tolerate no more failures than %d; use %d or %d", n, n-1, n-1, n+1))}
	}
	return nil
}

// validateControlPlaneStrategy validates the rollout strategy. replicas is nil for templates, which have none.
func validateControlPlaneStrategy(s controlplanev1.KubeadmControlPlaneRolloutStrategy, replicas *int32, path *field.Path) field.ErrorList {
	surge := s.RollingUpdate.MaxSurge
	path = path.Child("rollingUpdate", "maxSurge")
	switch {
	case surge == nil:
		return nil
	case surge.String() != "0" && surge.String() != "1":
		return field.ErrorList{field.Invalid(path, surge.String(), "must be 0 or 1: control plane Machines are replaced one at a time")}
	case surge.String() == "0" && replicas != nil && *replicas < 3:
		return field.ErrorList{field.Invalid(path, surge.String(),
			"can be 0 only with 3 replicas or more: with fewer, etcd would lose its quorum when a Machine is deleted before its replacement is created")}
	}
	return nil
}

// validateControlPlaneNaming checks that a name template generates unique names.
func validateControlPlaneNaming(n controlplanev1.MachineNamingSpec, path *field.Path) field.ErrorList {
	return validateNaming(n.Template, naming.Values{"cluster": {"name": "cluster"}, "kubeadmControlPlane": {"name": "plane"}}, naming.Parse, path)
}

// validateControlPlaneConfig validates the kubeadm configuration.
func validateControlPlaneConfig(r Request, spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	errs := validateKubeadmConfig(r, spec, path)
	cluster := path.Child("clusterConfiguration")
	c := spec.ClusterConfiguration
	if c.Etcd.Local.IsDefined() && c.Etcd.External.IsDefined() {
		errs = append(errs, field.Forbidden(cluster.Child("etcd", "local"), "only one of local and external may be set: remove one of them"))
	}
	if tag := c.DNS.ImageTag; tag != "" {
		if _, err := parseTag(tag); err != nil {
			errs = append(errs, field.Invalid(cluster.Child("dns", "imageTag"), tag, "must be a version of CoreDNS, for example v1.12.1"))
		}
	}
	return errs
}

// validateControlPlaneChange validates changes of immutable fields, the version and the CoreDNS version.
func validateControlPlaneChange(old, plane *controlplanev1.KubeadmControlPlane) field.ErrorList {
	config := field.NewPath("spec", "kubeadmConfigSpec")
	was, is := &old.Spec.KubeadmConfigSpec, &plane.Spec.KubeadmConfigSpec
	var errs field.ErrorList
	for _, fixed := range fixedConfiguration() {
		if !equality.Semantic.DeepEqual(fixed.of(was), fixed.of(is)) {
			errs = append(errs, field.Forbidden(config.Child(fixed.path[0], fixed.path[1:]...),
				"cannot be changed, because the cluster and its existing Machines use it; restore the previous value"))
		}
	}
	if before, now := was.ClusterConfiguration.Etcd.External.IsDefined(), is.ClusterConfiguration.Etcd.External.IsDefined(); before != now {
		errs = append(errs, field.Forbidden(config.Child("clusterConfiguration", "etcd"),
			"cannot change between local and external, because the data would be lost; create a new cluster"))
	}
	errs = append(errs, validateUpgrade(old.Spec.Version, plane.Spec.Version, field.NewPath("spec", "version"))...)
	if _, skips := plane.Annotations[controlplanev1.SkipCoreDNSAnnotation]; skips {
		return errs
	}
	return append(errs, validateCoreDNSUpgrade(was.ClusterConfiguration.DNS.ImageTag, is.ClusterConfiguration.DNS.ImageTag,
		config.Child("clusterConfiguration", "dns", "imageTag"))...)
}

// fixedField is an immutable part of the kubeadm configuration.
type fixedField struct {
	path []string
	of   func(*bootstrapv1.KubeadmConfigSpec) any
}

// fixedConfiguration returns the immutable parts of the kubeadm configuration. All other fields may change: new
// Machines use the new values, and the configuration that running clusters read is updated.
func fixedConfiguration() []fixedField {
	type config = bootstrapv1.KubeadmConfigSpec
	return []fixedField{
		{[]string{"clusterConfiguration", "controlPlaneEndpoint"}, func(c *config) any { return c.ClusterConfiguration.ControlPlaneEndpoint }},
		{[]string{"clusterConfiguration", "certificatesDir"}, func(c *config) any { return c.ClusterConfiguration.CertificatesDir }},
		{[]string{"clusterConfiguration", "caCertificateValidityPeriodDays"}, func(c *config) any { return c.ClusterConfiguration.CACertificateValidityPeriodDays }},
		{[]string{"initConfiguration", "bootstrapTokens"}, func(c *config) any { return c.InitConfiguration.BootstrapTokens }},
		{[]string{"initConfiguration", "localAPIEndpoint"}, func(c *config) any { return c.InitConfiguration.LocalAPIEndpoint }},
		{[]string{"joinConfiguration", "caCertPath"}, func(c *config) any { return c.JoinConfiguration.CACertPath }},
		{[]string{"joinConfiguration", "discovery"}, func(c *config) any { return c.JoinConfiguration.Discovery }},
		{[]string{"joinConfiguration", "controlPlane"}, func(c *config) any { return c.JoinConfiguration.ControlPlane }},
	}
}

// validateUpgrade rejects downgrades and skipped minor versions, which kubeadm does not support. Invalid versions are
// rejected elsewhere.
func validateUpgrade(before, now string, path *field.Path) field.ErrorList {
	from, err := semver.ParseTolerant(before)
	if err != nil {
		return nil
	}
	to, err := semver.ParseTolerant(now)
	if err != nil {
		return nil
	}
	switch {
	case to.LT(from):
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("cannot change from %s to %s: etcd and the API server cannot be downgraded", before, now))}
	case to.Major != from.Major, to.Minor > from.Minor+1:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("cannot change from %s to %s: upgrade one minor version at a time, to v%d.%d first",
			before, now, from.Major, from.Minor+1))}
	}
	return nil
}

// validateKubeadmControlPlaneTemplate validates the template of control planes in topologies. Its spec is immutable,
// except in dry runs of the topology controller. [Validate] calls it.
func validateKubeadmControlPlaneTemplate(r Request, template *controlplanev1.KubeadmControlPlaneTemplate) Response {
	path := field.NewPath("spec", "template")
	spec := path.Child("spec")
	s := template.Spec.Template.Spec
	errs := template.Spec.Template.ObjectMeta.Validate(path.Child("metadata"))
	errs = append(errs, s.MachineTemplate.ObjectMeta.Validate(spec.Child("machineTemplate", "metadata"))...)
	errs = append(errs, validateTaints(s.MachineTemplate.Spec.Taints, taintRules{controlPlane: true, gates: r.Gates},
		spec.Child("machineTemplate", "spec", "taints"))...)
	errs = append(errs, validateControlPlaneStrategy(s.Rollout.Strategy, nil, spec.Child("rollout", "strategy"))...)
	errs = append(errs, validateControlPlaneNaming(s.MachineNaming, spec.Child("machineNaming", "template"))...)
	errs = append(errs, validateControlPlaneConfig(r, &s.KubeadmConfigSpec, spec.Child("kubeadmConfigSpec"))...)
	old, isUpdate := r.Old.(*controlplanev1.KubeadmControlPlaneTemplate)
	settings := &kubeadmSettings{&s.KubeadmConfigSpec, s.Rollout.Before.CertificatesExpiryDays}
	if !isUpdate {
		errs = append(errs, validateConsistency(settings, nil, spec)...)
		var warnings []string
		if !r.Gates.ClusterTopology {
			warnings = []string{warnTopology + "KubeadmControlPlaneTemplate"}
		}
		return Response{Errors: errs, Warnings: warnings}
	}
	was := *old.Spec.Template.Spec.DeepCopy()
	defaultControlPlaneStrategy(&was.Rollout.Strategy) // it may have been stored before the defaults existed
	errs = append(errs, validateConsistency(settings, &kubeadmSettings{&was.KubeadmConfigSpec, was.Rollout.Before.CertificatesExpiryDays}, spec)...)
	s = *s.DeepCopy()
	defaultControlPlaneStrategy(&s.Rollout.Strategy)
	alignDefaults(&s.KubeadmConfigSpec, &was.KubeadmConfigSpec)
	if !isTopologyDryRun(r) && !equality.Semantic.DeepEqual(was, s) {
		errs = append(errs, field.Forbidden(spec, "cannot be changed: create a new template and reference it instead"))
	}
	return Response{Errors: errs}
}
