package simulated

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// crowd counts the simulated machines, which live in the memory of this process: by what the cache has when the first is
// asked about, then by what happens. The zero value is ready.
type crowd struct {
	mu      sync.Mutex
	members map[types.NamespacedName]bool
	own     map[string]int
}

// seed counts what is there before the first question.
func (c *crowd) seed(ctx context.Context, r client.Reader) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members != nil {
		return nil
	}
	var list infrav1.LocalMachineList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("counting simulated machines: %w", err)
	}
	c.members, c.own = map[types.NamespacedName]bool{}, map[string]int{}
	for i := range list.Items {
		if o := &list.Items[i]; o.Spec.Backend.Simulated != nil && o.Spec.ProviderID != "" {
			c.add(client.ObjectKeyFromObject(o))
		}
	}
	return nil
}

// has reports whether a machine is one of them.
func (c *crowd) has(key types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[key]
}

// room returns how many machines there are beside the one.
func (c *crowd) room(key types.NamespacedName) backend.Room {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := backend.Room{Own: c.own[key.Namespace], All: len(c.members)}
	if c.members[key] {
		room.Own, room.All = room.Own-1, room.All-1
	}
	return room
}

// enter makes a machine one of them, and returns why it may not be; empty if it may.
func (c *crowd) enter(key types.NamespacedName, most policy.Maximum) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members[key] {
		return ""
	}
	if why := most.Exceeded(setting, key.Namespace, c.own[key.Namespace], len(c.members)); why != "" {
		return why
	}
	c.add(key)
	return ""
}

// add is called with the mutex held.
func (c *crowd) add(key types.NamespacedName) {
	if c.members == nil {
		c.members, c.own = map[types.NamespacedName]bool{}, map[string]int{}
	}
	if !c.members[key] {
		c.members[key] = true
		c.own[key.Namespace]++
	}
}

// leave takes a machine out.
func (c *crowd) leave(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.members[key] {
		return
	}
	delete(c.members, key)
	if c.own[key.Namespace]--; c.own[key.Namespace] == 0 {
		delete(c.own, key.Namespace)
	}
}
