package clusters

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// Snapshot is the input of Decide.
type Snapshot struct {
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

func (c *controller) observe(ctx context.Context, o *infrav1.SSHCluster) (Snapshot, error) {
	s := Snapshot{Object: o, Policy: c.Policy, Now: c.now()}
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
	request, hosts, err := readHosts(ctx, c.client, o.Namespace)
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

// readHosts reads all SSHHosts, and the namespace for which a request selects some of them.
func readHosts(ctx context.Context, c client.Reader, namespace string) (inventory.Request, []*infrav1.SSHHost, error) {
	request := inventory.Request{Namespace: inventory.Namespace{Name: namespace}}
	n, err := infrastructure.ReadObject(ctx, c, "", namespace, &corev1.Namespace{})
	if err != nil {
		return request, nil, err
	}
	if n != nil {
		request.Namespace.Labels = n.Labels
	}
	list := &infrav1.SSHHostList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return request, nil, fmt.Errorf("listing SSHHosts: %w", err)
	}
	var hosts []*infrav1.SSHHost
	for i := range list.Items {
		hosts = append(hosts, &list.Items[i])
	}
	return request, hosts, nil
}

// hostedKind is a control plane without machines, kubeadmKind one on machines. Only the first can provide its own endpoint.
const hostedKind, kubeadmKind = "HostedControlPlane", "KubeadmControlPlane"

func isHosted(ref clusterv1.ContractVersionedObjectReference) bool {
	return ref.Kind == hostedKind && ref.APIGroup == controlplanev1.GroupVersion.Group
}
