package clone

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
)

// UsedTemplates is the set of templates in use. [Usage.Read] returns it to the MachineSet and topology controllers.
type UsedTemplates map[clusterv1.ContractVersionedObjectReference]bool

// Usage reads from the API server which templates are in use. The MachineSet and topology controllers call it before
// they delete a template of a managed topology, because a template that an owner has just started to use must not be
// deleted. Every read lists all MachineSets and MachineDeployments of the namespace, so concurrent reads are shared.
type Usage struct{ all *kube.SharedRead[users] }

// users maps each template to the owners that use it.
type users map[clusterv1.ContractVersionedObjectReference][]types.UID

// NewUsage returns a Usage that reads with live, a reader without a cache. The MachineSet and topology controllers
// create one each.
func NewUsage(live client.Reader) *Usage {
	return &Usage{kube.NewSharedRead(func(ctx context.Context, namespace string) (users, error) { return listUsers(ctx, live, namespace) })}
}

// Read returns the templates that MachineSets and MachineDeployments in the owner's namespace use. It ignores
// objects that are being deleted and the owner itself, includes all Clusters, and reflects all writes before the
// call.
func (u *Usage) Read(ctx context.Context, owner client.Object) (UsedTemplates, error) {
	found, err := u.all.Get(ctx, owner.GetNamespace())
	if err != nil {
		return nil, err
	}
	return found.without(owner.GetUID()), nil
}

func (u users) without(owner types.UID) UsedTemplates {
	out := UsedTemplates{}
	for ref, all := range u {
		for _, uid := range all {
			if uid != owner {
				out[ref] = true
			}
		}
	}
	return out
}

func listUsers(ctx context.Context, live client.Reader, namespace string) (users, error) {
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
