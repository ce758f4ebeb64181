package rollout

import (
	"fmt"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	base "github.com/slipwayhq/slipway/internal/rollout"
)

// Cause is what makes a Machine outdated.
type Cause string

// The causes.
const (
	Version           Cause = "Version"
	Infrastructure    Cause = "Infrastructure"
	KubeadmConfig     Cause = "KubeadmConfig"
	RolloutAfter      Cause = "RolloutAfter"
	CertificateExpiry Cause = "CertificateExpiry"
)

// Reason says why a Machine has to be replaced.
type Reason struct {
	Cause   Cause
	Message string
}

// Machine is a control plane Machine with what it was created from.
type Machine struct {
	*clusterv1.Machine
	// Config is its KubeadmConfig; nil: not known, and not compared.
	Config *bootstrapv1.KubeadmConfig
	// Infra is the template that its infrastructure machine says it was cloned from; not defined: it does not say so, and is not
	// compared.
	Infra clusterv1.ContractVersionedObjectReference
	// Authority is when the authority of its certificates expires; zero: not known.
	Authority time.Time
}

// kubeadmValidity is how long certificates that kubeadm makes are valid where nothing else is set, in days.
const kubeadmValidity = 365

// Futile is why a Machine whose certificates expire soon is not replaced for that: the certificates of a new one would expire as soon. Empty:
// a new one would be better.
func Futile(plane *controlplanev1.KubeadmControlPlane, authority, now time.Time) string {
	days, validity := plane.Spec.Rollout.Before.CertificatesExpiryDays, int32(kubeadmValidity)
	if set := plane.Spec.KubeadmConfigSpec.ClusterConfiguration.CertificateValidityPeriodDays; set > 0 {
		validity = set
	}
	switch {
	case days == 0:
		return ""
	case days >= validity:
		return fmt.Sprintf("Machines are not replaced before their certificates expire: spec.rollout.before.certificatesExpiryDays (%d) is not less than "+
			"certificateValidityPeriodDays (%d), so that those of a new Machine would expire as soon", days, validity)
	case !authority.IsZero() && !authority.After(now.AddDate(0, 0, int(days))):
		return fmt.Sprintf("Machines are not replaced before their certificates expire: the authority that signs them expires on %s itself", authority.UTC().Format(time.RFC3339))
	}
	return ""
}

// Reasons say why a Machine of a control plane has to be replaced, in the order of the table in the documentation of the package; none:
// it is up to date.
func Reasons(plane *controlplanev1.KubeadmControlPlane, m Machine, now time.Time) []Reason {
	var out []Reason
	differ := func(cause Cause, format string, args ...any) {
		out = append(out, Reason{cause, fmt.Sprintf(format, args...)})
	}
	if m.Spec.Version != plane.Spec.Version {
		differ(Version, "Version %s, %s required", orNone(m.Spec.Version), plane.Spec.Version)
	}
	if want := plane.Spec.MachineTemplate.Spec.InfrastructureRef; m.Infra.IsDefined() && m.Infra != want {
		differ(Infrastructure, "%s %s, %s %s required", m.Infra.Kind, m.Infra.Name, want.Kind, want.Name)
	}
	if m.Config != nil {
		if fields := Differences(plane, m.Config.Spec); len(fields) > 0 {
			differ(KubeadmConfig, "KubeadmConfig differs in %s", condition.Names(fields))
		}
	}
	if base.Expired(plane.Spec.Rollout.After.Time, m.CreationTimestamp.Time, now) {
		differ(RolloutAfter, "KubeadmControlPlane spec.rollout.after expired")
	}
	if days := plane.Spec.Rollout.Before.CertificatesExpiryDays; days > 0 && expires(m, now.AddDate(0, 0, int(days))) && Futile(plane, m.Authority, now) == "" {
		differ(CertificateExpiry, "Certificates will expire soon, within %d days", days)
	}
	return out
}

// CertificatesExpiry is when the first of the certificates of a Machine expires; false: not known.
func CertificatesExpiry(m Machine) (time.Time, bool) {
	if expiry := m.Status.CertificatesExpiryDate; !expiry.IsZero() {
		return expiry.Time, true
	}
	return m.saidExpiry()
}

func expires(m Machine, before time.Time) bool {
	expiry, known := CertificatesExpiry(m)
	return known && expiry.Before(before)
}

// NextTime is when the passing of time alone makes the first of the Machines outdated; zero: never.
func NextTime(plane *controlplanev1.KubeadmControlPlane, all []Machine, now time.Time) time.Time {
	var next time.Time
	note := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	note(plane.Spec.Rollout.After.Time)
	for _, m := range all {
		if expiry, known := CertificatesExpiry(m); known && plane.Spec.Rollout.Before.CertificatesExpiryDays > 0 {
			note(expiry.AddDate(0, 0, -int(plane.Spec.Rollout.Before.CertificatesExpiryDays)))
		}
	}
	return next
}

// Messages of reasons.
func Messages(reasons []Reason) []string {
	var out []string
	for _, r := range reasons {
		out = append(out, r.Message)
	}
	return out
}

// Surge is how many Machines more there may be while outdated ones are replaced.
func Surge(plane *controlplanev1.KubeadmControlPlane) int {
	most := plane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge
	if most == nil {
		return 1
	}
	return min(1, most.IntValue())
}

// PendingVersion says that the topology of the Cluster asks for another version, which comes before anything else; empty: it does not.
func PendingVersion(plane *controlplanev1.KubeadmControlPlane, cluster *clusterv1.Cluster) string {
	topology := cluster.Spec.Topology
	next := topology.Version
	if step := cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]; step != "" {
		next = step
	}
	if !topology.IsDefined() || next == plane.Spec.Version || topology.Version == plane.Spec.Version {
		return ""
	}
	return fmt.Sprintf("Waiting for the topology of Cluster %s to set version %s", cluster.Name, next)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
