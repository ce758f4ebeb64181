package simulated

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
)

// machineCounter counts the simulated machines, which exist in the memory of this process, for the operator's limit. It
// starts with the machines in the client cache on first use and then follows changes. The zero value is ready to use.
// The methods of simulatedMachines call it: Inspect and CheckQuota seed it, Create adds a machine and Delete removes
// it.
type machineCounter struct {
	mu      sync.Mutex
	members map[types.NamespacedName]bool
	own     map[string]int
}

// seed counts the existing machines on first use. simulatedMachines.Inspect and simulatedMachines.CheckQuota call it.
func (c *machineCounter) seed(ctx context.Context, r client.Reader) error {
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

// has reports whether the machine is counted. simulatedMachines.Inspect calls it.
func (c *machineCounter) has(key types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[key]
}

// quota returns the number of other machines. simulatedMachines.CheckQuota returns it.
func (c *machineCounter) quota(key types.NamespacedName) backend.Quota {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := backend.Quota{Own: c.own[key.Namespace], All: len(c.members)}
	if c.members[key] {
		room.Own, room.All = room.Own-1, room.All-1
	}
	return room
}

// enter counts a machine, or returns a message if that exceeds the limit. simulatedMachines.Create calls it.
func (c *machineCounter) enter(key types.NamespacedName, most policy.Maximum) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members[key] {
		return ""
	}
	if why := most.Exceeded(maximumSetting, key.Namespace, c.own[key.Namespace], len(c.members)); why != "" {
		return why
	}
	c.add(key)
	return ""
}

// add requires that the mutex is held.
func (c *machineCounter) add(key types.NamespacedName) {
	if c.members == nil {
		c.members, c.own = map[types.NamespacedName]bool{}, map[string]int{}
	}
	if !c.members[key] {
		c.members[key] = true
		c.own[key.Namespace]++
	}
}

// leave removes a machine from the count. simulatedMachines.Delete calls it.
func (c *machineCounter) leave(key types.NamespacedName) {
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
