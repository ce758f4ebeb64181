package clone

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube/reading"
)

// Used are references to templates that are in use.
type Used map[clusterv1.ContractVersionedObjectReference]bool

// Usage reads which templates are in use, past the cache: a template that an owner began to use a moment ago must not be deleted. The API
// server decodes all MachineSets and MachineDeployments of the namespace for it, whichever are wanted.
type Usage struct{ all *reading.Shared[users] }

// users are the owners by the templates that they use.
type users map[clusterv1.ContractVersionedObjectReference][]types.UID

// NewUsage returns one that reads with a reader without a cache.
func NewUsage(live client.Reader) *Usage {
	return &Usage{reading.NewShared(func(ctx context.Context, namespace string) (users, error) { return list(ctx, live, namespace) })}
}

// Read returns which templates the MachineSets and MachineDeployments of the owner's namespace use that are not being deleted, but for the
// owner itself. It does not limit itself to one Cluster, and knows all that was written before it was called.
func (u *Usage) Read(ctx context.Context, owner client.Object) (Used, error) {
	found, err := u.all.Of(ctx, owner.GetNamespace())
	if err != nil {
		return nil, err
	}
	return found.without(owner.GetUID()), nil
}

func (u users) without(owner types.UID) Used {
	out := Used{}
	for ref, all := range u {
		for _, uid := range all {
			if uid != owner {
				out[ref] = true
			}
		}
	}
	return out
}

func list(ctx context.Context, live client.Reader, namespace string) (users, error) {
	out := users{}
	use := func(o client.Object, spec clusterv1.MachineSpec) {
		if o.GetDeletionTimestamp().IsZero() {
			for _, ref := range []clusterv1.ContractVersionedObjectReference{spec.Bootstrap.ConfigRef, spec.InfrastructureRef} {
				out[ref] = append(out[ref], o.GetUID())
			}
		}
	}
	sets := &clusterv1.MachineSetList{}
	if err := live.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing MachineSets: %w", err)
	}
	for i := range sets.Items {
		use(&sets.Items[i], sets.Items[i].Spec.Template.Spec)
	}
	deployments := &clusterv1.MachineDeploymentList{}
	if err := live.List(ctx, deployments, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	for i := range deployments.Items {
		use(&deployments.Items[i], deployments.Items[i].Spec.Template.Spec)
	}
	return out, nil
}
