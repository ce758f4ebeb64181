package clone

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Used are references to templates that are in use.
type Used map[clusterv1.ContractVersionedObjectReference]bool

// Usage reads which templates are in use, past the cache: a template that an owner began to use a moment ago must not be deleted. The API
// server decodes all MachineSets and MachineDeployments of the namespace for it, whichever are wanted. Callers that come while a list is
// read share the next one: a thousand Clusters that roll out together, or are deleted, do not take a thousand lists.
type Usage struct {
	live client.Reader

	mu         sync.Mutex
	namespaces map[string]*reading
}

// reading is what is read of one namespace. It exists as long as a caller waits for it.
type reading struct {
	waiting int // guarded by the lock of Usage
	begun   int // guarded by the lock of Usage

	turn  chan struct{} // is full while a list is read
	users users         // of the last list; guarded by turn, as is last
	last  int           // which list that was
}

// users are the owners by the templates that they use.
type users map[clusterv1.ContractVersionedObjectReference][]types.UID

// NewUsage returns one that reads with a reader without a cache.
func NewUsage(live client.Reader) *Usage {
	return &Usage{live: live, namespaces: map[string]*reading{}}
}

// Read returns which templates the MachineSets and MachineDeployments of the owner's namespace use that are not being deleted, but for the
// owner itself. It does not limit itself to one Cluster, and knows all that was written before it was called.
func (u *Usage) Read(ctx context.Context, owner client.Object) (Used, error) {
	namespace := owner.GetNamespace()
	r, begun := u.enter(namespace)
	defer u.leave(namespace)
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r.last <= begun { // the last list was begun before this call
		number := u.begin(r)
		found, err := list(ctx, u.live, namespace)
		if err != nil {
			return nil, err
		}
		r.users, r.last = found, number
	}
	return r.users.without(owner.GetUID()), nil
}

// enter waits for a list of the namespace; those that were begun already do not count.
func (u *Usage) enter(namespace string) (r *reading, begun int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r = u.namespaces[namespace]; r == nil {
		r = &reading{turn: make(chan struct{}, 1)}
		u.namespaces[namespace] = r
	}
	r.waiting++
	return r, r.begun
}

// begin numbers a list.
func (u *Usage) begin(r *reading) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	r.begun++
	return r.begun
}

func (u *Usage) leave(namespace string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r := u.namespaces[namespace]; r.waiting > 1 {
		r.waiting--
	} else {
		delete(u.namespaces, namespace)
	}
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
