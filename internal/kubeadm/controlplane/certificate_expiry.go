package controlplane

import (
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// lacksExpiry reports whether a Machine has a Node and a KubeadmConfig without the expiration of its certificates
// (annotation machine.cluster.x-k8s.io/certificates-expiry). The Machine controller copies the annotation to
// status.certificatesExpiryDate, and [rolloutReasons] compares it with spec.rollout.before. An expiration in the past
// also counts as missing, because the certificates may have been renewed on the node.
func (m memberMachine) lacksExpiry(now time.Time) bool {
	if m.Config == nil || !m.Status.NodeRef.IsDefined() || !m.DeletionTimestamp.IsZero() {
		return false
	}
	if _, has := m.Config.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]; !has {
		return true
	}
	at, known := m.recordedExpiry()
	return known && !now.Before(at)
}

// expiryServers returns the API servers of the Machines that lack the expiration, for the next read of the workload
// cluster. [snapshot.readRequest] calls it.
func expiryServers(cluster client.ObjectKey, all []memberMachine, now time.Time) []workload.ExpiryServer {
	var out []workload.ExpiryServer
	for _, m := range all {
		if !m.lacksExpiry(now) {
			continue
		}
		init, join := m.Config.Spec.InitConfiguration.LocalAPIEndpoint, m.Config.Spec.JoinConfiguration.ControlPlane
		port := init.BindPort
		if join != nil && join.LocalAPIEndpoint.BindPort != 0 {
			port = join.LocalAPIEndpoint.BindPort
		}
		out = append(out, workload.ExpiryServer{Cluster: cluster, Node: m.Status.NodeRef.Name, Port: int(port)})
	}
	return out
}

// expiryNotes records the observed expirations, by Node, for Machines that lack it. It is a step of [decideMachines].
func expiryNotes(all []memberMachine, read map[string]time.Time, now time.Time) []reconciler.Action {
	var out []reconciler.Action
	for _, m := range all {
		at, is := read[m.Status.NodeRef.Name]
		if !is || !m.lacksExpiry(now) {
			continue
		}
		if recorded, known := m.recordedExpiry(); !known || !recorded.Equal(at.Truncate(time.Second)) {
			out = append(out, recordExpiry{Config: m.Config.Name, Expiry: at})
		}
	}
	return out
}

func (m memberMachine) recordedExpiry() (time.Time, bool) {
	if m.Config == nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, m.Config.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation])
	return at, err == nil
}

// ignoredConditions returns the condition types that do not block the replacement of a Machine. If its certificates
// have expired, the condition of its API server is ignored, because only the replacement fixes it. The preflight checks
// call it.
func ignoredConditions(m memberMachine, read map[string]time.Time, now time.Time) []string {
	if !m.isOutdated() || certificatesExpiredAt(m, read, now).IsZero() {
		return nil
	}
	return []string{controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition}
}

// certificatesExpiredAt returns the time at which certificates of a Machine expired, or zero. The observed expirations
// by Node take precedence over the recorded one.
func certificatesExpiredAt(m memberMachine, read map[string]time.Time, now time.Time) time.Time {
	at, known := read[m.Status.NodeRef.Name]
	if !known {
		at, known = earliestExpiry(m)
	}
	if !known || now.Before(at) {
		return time.Time{}
	}
	return at
}
