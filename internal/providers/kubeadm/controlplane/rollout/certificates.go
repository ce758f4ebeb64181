package rollout

import (
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/action"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/expiry"
)

// LacksExpiry reports whether a Machine has a Node, and a KubeadmConfig that does not say yet until when the certificates are valid, or says a
// time that is over: they may have been renewed on the node.
func (m Machine) LacksExpiry(now time.Time) bool {
	if m.Config == nil || !m.Status.NodeRef.IsDefined() || !m.DeletionTimestamp.IsZero() {
		return false
	}
	if _, has := m.Config.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]; !has {
		return true
	}
	at, known := m.saidExpiry()
	return known && !now.Before(at)
}

// Servers are the API servers of the Machines that lack it.
func Servers(cluster client.ObjectKey, all []Machine, now time.Time) []expiry.Server {
	var out []expiry.Server
	for _, m := range all {
		if !m.LacksExpiry(now) {
			continue
		}
		init, join := m.Config.Spec.InitConfiguration.LocalAPIEndpoint, m.Config.Spec.JoinConfiguration.ControlPlane
		port := init.BindPort
		if join != nil && join.LocalAPIEndpoint.BindPort != 0 {
			port = join.LocalAPIEndpoint.BindPort
		}
		out = append(out, expiry.Server{Cluster: cluster, Node: m.Status.NodeRef.Name, Port: int(port)})
	}
	return out
}

// ExpiryNotes record until when certificates are valid that were read, by Node, of the Machines that lack it.
func ExpiryNotes(all []Machine, read map[string]time.Time, now time.Time) []loop.Action {
	var out []loop.Action
	for _, m := range all {
		at, is := read[m.Status.NodeRef.Name]
		if !is || !m.LacksExpiry(now) {
			continue
		}
		if said, known := m.saidExpiry(); !known || !said.Equal(at.Truncate(time.Second)) {
			out = append(out, action.NoteExpiry{Config: m.Config.Name, Expiry: at})
		}
	}
	return out
}

// saidExpiry is until when the certificates are valid by the KubeadmConfig; false: it does not say.
func (m Machine) saidExpiry() (time.Time, bool) {
	if m.Config == nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, m.Config.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation])
	return at, err == nil
}

// Overlooked are the types of conditions by which a Machine that is to be replaced, for these reasons, holds nothing back: of one whose certificates
// expired that of its API server. Nothing else would end it.
func Overlooked(m Machine, reasons []Reason, read map[string]time.Time, now time.Time) []string {
	if len(reasons) == 0 || Expired(m, read, now).IsZero() {
		return nil
	}
	return []string{controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition}
}

// Expired is when certificates of a Machine expired, by what was read of them by Node, or else by what is recorded; zero: they did not, as far
// as is known.
func Expired(m Machine, read map[string]time.Time, now time.Time) time.Time {
	at, known := read[m.Status.NodeRef.Name]
	if !known {
		at, known = CertificatesExpiry(m)
	}
	if !known || now.Before(at) {
		return time.Time{}
	}
	return at
}
