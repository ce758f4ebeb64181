package clusters

import (
	"context"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// snapshot is the input of decide.
type snapshot struct {
	Object *infrav1.SSHCluster
	// Cluster that owns the object. Nil if it is not in the cache yet.
	Cluster *clusterv1.Cluster
	// HostedControlPlane of the Cluster. Nil if there is none, or one of another kind.
	HostedControlPlane *controlplanev1.HostedControlPlane
	// FailureDomains of the hosts that are offered to the namespace, sorted.
	FailureDomains []string
	// Policy is the operator's configuration.
	Policy policy.Configuration
	Now    time.Time
}

func (c *controller) observe(ctx context.Context, o *infrav1.SSHCluster) (snapshot, error) {
	s := snapshot{Object: o, Policy: c.Policy, Now: c.now()}
	var err error
	if s.Cluster, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, ownerName(o), &clusterv1.Cluster{}); err != nil {
		return s, err
	}
	if s.Cluster != nil && isHosted(s.Cluster.Spec.ControlPlaneRef) && !c.noHosted {
		s.HostedControlPlane, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, s.Cluster.Spec.ControlPlaneRef.Name, &controlplanev1.HostedControlPlane{})
		if err != nil {
			return s, err
		}
	}
	request, hosts, err := inventory.Read(ctx, c.client, o.Namespace)
	if err != nil {
		return s, err
	}
	for _, h := range request.Matching(hosts) {
		if d := h.Spec.FailureDomain; d != "" && !slices.Contains(s.FailureDomains, d) {
			s.FailureDomains = append(s.FailureDomains, d)
		}
	}
	slices.Sort(s.FailureDomains)
	return s, nil
}

// hostedKind is a control plane without machines, kubeadmKind one on machines. Only the first can provide its own endpoint.
const hostedKind, kubeadmKind = "HostedControlPlane", "KubeadmControlPlane"

func isHosted(ref clusterv1.ContractVersionedObjectReference) bool {
	return ref.Kind == hostedKind && ref.APIGroup == controlplanev1.GroupVersion.Group
}
