package controlplane

import (
	"cmp"
	"fmt"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	base "github.com/slipwayhq/slipway/internal/rollout"
)

// rolloutCause is a cause for which a Machine is replaced, see the table in the package documentation. A Machine with a
// cause is outdated: [scale] updates it in place or replaces it.
type rolloutCause string

const (
	rolloutVersion           rolloutCause = "Version"
	rolloutInfrastructure    rolloutCause = "Infrastructure"
	rolloutKubeadmConfig     rolloutCause = "KubeadmConfig"
	rolloutAfter             rolloutCause = "RolloutAfter"
	rolloutCertificateExpiry rolloutCause = "CertificateExpiry"
)

// rolloutReason is a cause with a message for the conditions RollingOut and UpToDate.
type rolloutReason struct {
	Cause   rolloutCause
	Message string
}

// kubeadmValidity is kubeadm's default validity of certificates, in days.
const kubeadmValidity = 365

// expiryRolloutObstacle returns the reason why a Machine with expiring certificates is not replaced: the certificates
// of a new Machine would expire just as soon. It is empty if a replacement helps.
func expiryRolloutObstacle(plane *controlplanev1.KubeadmControlPlane, authority, now time.Time) string {
	days := plane.Spec.Rollout.Before.CertificatesExpiryDays
	validity := cmp.Or(max(plane.Spec.KubeadmConfigSpec.ClusterConfiguration.CertificateValidityPeriodDays, 0), kubeadmValidity)
	switch {
	case days == 0:
		return ""
	case days >= validity:
		return fmt.Sprintf("Machines are not replaced before their certificates expire: spec.rollout.before.certificatesExpiryDays (%d) is not less than "+
			"certificateValidityPeriodDays (%d), so the certificates of a new Machine would expire just as soon", days, validity)
	case !authority.IsZero() && !authority.After(now.AddDate(0, 0, int(days))):
		return fmt.Sprintf("Machines are not replaced before their certificates expire: the CA that signs the certificates expires on %s itself", authority.UTC().Format(time.RFC3339))
	}
	return ""
}

// rolloutReasons returns the reasons why a Machine has to be replaced, in the order of the table in the package
// documentation. It is empty if the Machine is up to date. [snapshot.withMembers] computes it for each Machine in each
// reconciliation.
func rolloutReasons(plane *controlplanev1.KubeadmControlPlane, m memberMachine, now time.Time) []rolloutReason {
	var out []rolloutReason
	differ := func(cause rolloutCause, format string, args ...any) {
		out = append(out, rolloutReason{cause, fmt.Sprintf(format, args...)})
	}
	if m.Spec.Version != plane.Spec.Version {
		differ(rolloutVersion, "Version %s, %s required", cmp.Or(m.Spec.Version, "none"), plane.Spec.Version)
	}
	if want := plane.Spec.MachineTemplate.Spec.InfrastructureRef; m.Template.IsDefined() && m.Template != want {
		differ(rolloutInfrastructure, "%s %s, %s %s required", m.Template.Kind, m.Template.Name, want.Kind, want.Name)
	}
	if m.Config != nil {
		if fields := configDifferences(plane, m.Config.Spec); len(fields) > 0 {
			differ(rolloutKubeadmConfig, "KubeadmConfig differs in %s", condition.Names(fields))
		}
	}
	if base.Expired(plane.Spec.Rollout.After.Time, m.CreationTimestamp.Time, now) {
		differ(rolloutAfter, "KubeadmControlPlane spec.rollout.after expired")
	}
	if days := plane.Spec.Rollout.Before.CertificatesExpiryDays; days > 0 && expires(m, now.AddDate(0, 0, int(days))) && expiryRolloutObstacle(plane, m.Authority, now) == "" {
		differ(rolloutCertificateExpiry, "Certificates will expire soon, within %d days", days)
	}
	return out
}

// earliestExpiry returns the earliest expiration of a Machine's certificates, or false if unknown.
func earliestExpiry(m memberMachine) (time.Time, bool) {
	if expiry := m.Status.CertificatesExpiryDate; !expiry.IsZero() {
		return expiry.Time, true
	}
	return m.recordedExpiry()
}

// expires reports whether a certificate of the Machine expires before the given time.
func expires(m memberMachine, before time.Time) bool {
	expiry, known := earliestExpiry(m)
	return known && expiry.Before(before)
}

// nextTime returns the time at which the first Machine becomes outdated by the passing of time, or zero.
// [decideMachines] requeues for this time.
func nextTime(plane *controlplanev1.KubeadmControlPlane, all []memberMachine, now time.Time) time.Time {
	var next time.Time
	note := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	note(plane.Spec.Rollout.After.Time)
	for _, m := range all {
		if expiry, known := earliestExpiry(m); known && plane.Spec.Rollout.Before.CertificatesExpiryDays > 0 {
			note(expiry.AddDate(0, 0, -int(plane.Spec.Rollout.Before.CertificatesExpiryDays)))
		}
	}
	return next
}

// rolloutMessages returns the messages of the reasons, for the conditions and for actions.
func rolloutMessages(reasons []rolloutReason) []string {
	var out []string
	for _, r := range reasons {
		out = append(out, r.Message)
	}
	return out
}

// maxSurge returns how many additional Machines may exist while outdated ones are replaced. [scale] calls it.
func maxSurge(plane *controlplanev1.KubeadmControlPlane) int {
	most := plane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge
	if most == nil {
		return 1
	}
	return min(1, most.IntValue())
}

// pendingVersion returns a message if the topology of the Cluster requires another version, which takes precedence over
// other changes. Otherwise it is empty. It is a preflight check of [scale].
func pendingVersion(plane *controlplanev1.KubeadmControlPlane, cluster *clusterv1.Cluster) string {
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
