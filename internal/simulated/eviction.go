package simulated

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
)

// evictions is the eviction subresource of Pods, which controllers call when they drain a Node. The Kubernetes
// implementation reads disruption budgets with a client, without the context of the request, so each cluster with
// evictions has a separate instance.
type evictions struct {
	*podstore.EvictionREST
	api   *api
	parts parts
}

func (e evictions) Create(
	ctx context.Context, name string, o runtime.Object, validate rest.ValidateObjectFunc, opts *metav1.CreateOptions,
) (runtime.Object, error) {
	t := tenantFrom(ctx)
	if t == nil {
		return nil, errNoCluster
	}
	own, err := e.forTenant(t)
	if err != nil {
		return nil, fmt.Errorf("preparing evictions: %w", err)
	}
	return own.Create(ctx, name, o, validate, opts)
}

// forTenant returns the eviction instance of a cluster.
func (e evictions) forTenant(t *tenant) (*podstore.EvictionREST, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.eviction != nil {
		return t.eviction, nil
	}
	policy, err := policyclient.NewForConfig(e.api.LoopbackOf(context.Background(), t))
	if err != nil {
		return nil, err
	}
	pods, err := podstore.NewStorage(e.parts.options, nil, nil, policy, e.parts.access)
	if err != nil {
		return nil, err
	}
	t.eviction = pods.Eviction
	return t.eviction, nil
}
