package admission

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// Default validity of certificates in kubeadm and in the control plane, in days.
const certificateDays, authorityDays = 365, 3650

// imageTag matches the tag of an image.
var imageTag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// kubeadmSettings holds the settings of a control plane that must be consistent with each other.
type kubeadmSettings struct {
	config *bootstrapv1.KubeadmConfigSpec
	// expiryDays is spec.rollout.before.certificatesExpiryDays; 0 if it is not set.
	expiryDays int32
}

// validateConsistency validates settings of a KubeadmControlPlane or its template that must be consistent with each
// other. Unchanged settings are accepted, so that objects stored before a rule existed can still be updated.
// [validateKubeadmControlPlane] and [validateKubeadmControlPlaneTemplate] call it for [Validate].
func validateConsistency(s, old *kubeadmSettings, spec *field.Path) field.ErrorList {
	config := spec.Child("kubeadmConfigSpec")
	var errs field.ErrorList
	for _, rule := range []struct {
		of       func(*kubeadmSettings) any
		validate func(*kubeadmSettings) field.ErrorList
	}{
		{(*kubeadmSettings).validity, func(s *kubeadmSettings) field.ErrorList { return s.validateValidity(spec, config) }},
		{(*kubeadmSettings).timeouts, func(s *kubeadmSettings) field.ErrorList { return s.validateTimeouts(config) }},
		{(*kubeadmSettings).etcdTag, func(s *kubeadmSettings) field.ErrorList { return s.validateEtcdTag(config) }},
	} {
		if old == nil || !equality.Semantic.DeepEqual(rule.of(old), rule.of(s)) {
			errs = append(errs, rule.validate(s)...)
		}
	}
	return errs
}

func (s *kubeadmSettings) validity() any {
	c := s.config.ClusterConfiguration
	return []int32{s.expiryDays, c.CertificateValidityPeriodDays, c.CACertificateValidityPeriodDays}
}

// validateValidity rejects certificates that outlive their CA, and certificates that would be replaced immediately.
func (s *kubeadmSettings) validateValidity(spec, config *field.Path) field.ErrorList {
	var errs field.ErrorList
	leaf, authority := int32(certificateDays), int32(authorityDays)
	if days := s.config.ClusterConfiguration.CertificateValidityPeriodDays; days > 0 {
		leaf = days
	}
	if days := s.config.ClusterConfiguration.CACertificateValidityPeriodDays; days > 0 {
		authority = days
	}
	if days := s.config.ClusterConfiguration.CertificateValidityPeriodDays; days > authority {
		errs = append(errs, field.Invalid(config.Child("clusterConfiguration", "certificateValidityPeriodDays"), days,
			fmt.Sprintf("must not be greater than caCertificateValidityPeriodDays (%d), because certificates are invalid without their CA", authority)))
	}
	if s.expiryDays >= leaf {
		errs = append(errs, field.Invalid(spec.Child("rollout", "before", "certificatesExpiryDays"), s.expiryDays,
			fmt.Sprintf("must be less than certificateValidityPeriodDays (%d), because every new Machine would be replaced immediately", leaf)))
	}
	return errs
}

const healthCheckSeconds = "controlPlaneComponentHealthCheckSeconds"

func (s *kubeadmSettings) timeouts() any {
	return []*int32{s.config.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds, s.config.JoinConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds}
}

// validateTimeouts rejects a timeout that differs between the first Machine and the others.
func (s *kubeadmSettings) validateTimeouts(config *field.Path) field.ErrorList {
	initial, join := s.config.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds, s.config.JoinConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds
	if equality.Semantic.DeepEqual(initial, join) {
		return nil
	}
	value := "not set"
	if initial != nil {
		value = fmt.Sprint(*initial)
	}
	return field.ErrorList{field.Invalid(config.Child("initConfiguration", "timeouts", healthCheckSeconds), value,
		"must be the same as joinConfiguration.timeouts."+healthCheckSeconds+": set both or none")}
}

func (s *kubeadmSettings) etcdTag() any { return s.config.ClusterConfiguration.Etcd.Local.ImageTag }

func (s *kubeadmSettings) validateEtcdTag(config *field.Path) field.ErrorList {
	tag := s.config.ClusterConfiguration.Etcd.Local.ImageTag
	if tag == "" || imageTag.MatchString(tag) {
		return nil
	}
	return field.ErrorList{field.Invalid(config.Child("clusterConfiguration", "etcd", "local", "imageTag"), tag,
		"must be the tag of an image, for example 3.6.5-0")}
}

// alignDefaults copies fields from another configuration if one of the two values is unset and the other is the
// default. [Default] calls it for templates that the topology controller compares in a dry run, and
// validateKubeadmControlPlaneTemplate before it decides whether the spec of a template was changed. Older versions of
// Cluster API stored these defaults in every object, so their absence is no difference.
func alignDefaults(spec, with *bootstrapv1.KubeadmConfigSpec) {
	align(&spec.Format, with.Format, bootstrapv1.CloudConfig)
	initial, join := &spec.InitConfiguration.NodeRegistration, &spec.JoinConfiguration.NodeRegistration
	align(&initial.ImagePullPolicy, with.InitConfiguration.NodeRegistration.ImagePullPolicy, corev1.PullIfNotPresent)
	align(&join.ImagePullPolicy, with.JoinConfiguration.NodeRegistration.ImagePullPolicy, corev1.PullIfNotPresent)
}

func align[T ~string](value *T, with, byDefault T) {
	if (*value == "" || *value == byDefault) && (with == "" || with == byDefault) {
		*value = with
	}
}
