package rollout

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/action"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/expiry"
)

// LacksExpiry reports whether a Machine has a Node, and a KubeadmConfig that does not say yet until when the certificates are valid.
func (m Machine) LacksExpiry() bool {
	if m.Config == nil || !m.Status.NodeRef.IsDefined() || !m.DeletionTimestamp.IsZero() {
		return false
	}
	_, has := m.Config.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]
	return !has
}

// Servers are the API servers of the Machines that lack it.
func Servers(cluster client.ObjectKey, all []Machine) []expiry.Server {
	var out []expiry.Server
	for _, m := range all {
		if !m.LacksExpiry() {
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
func ExpiryNotes(all []Machine, read map[string]time.Time) []loop.Action {
	var out []loop.Action
	for _, m := range all {
		if at, is := read[m.Status.NodeRef.Name]; is && m.LacksExpiry() {
			out = append(out, action.NoteExpiry{Config: m.Config.Name, Expiry: at})
		}
	}
	return out
}
