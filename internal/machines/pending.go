package machines

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
)

// PendingRecheck is the interval to read again while the cache does not show a created Machine. Usually the watch
// is faster.
const PendingRecheck = 5 * time.Second

// Pending remembers the Machines that this process created and deleted until the cache shows these changes. The
// MachineSet and KubeadmControlPlane controllers have one each. An owner that only counted Machines in the cache would
// create or delete more Machines in their place. The zero value is ready to use. [MachineWriter] records each creation
// and deletion in it.
type Pending struct {
	created, deleted kube.Pending
	mu               sync.Mutex
	refusedOwners    map[types.UID]bool
}

// maxRefused limits the number of owners whose rejected creations are remembered.
const maxRefused = 10000

// recordRejection records whether the last creation for an owner was rejected. [MachineWriter.CreateAll] calls it after
// each creation, and reads it before the next one.
func (p *Pending) recordRejection(owner types.UID, is bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !is {
		delete(p.refusedOwners, owner)
		return
	}
	if p.refusedOwners == nil || len(p.refusedOwners) >= maxRefused {
		p.refusedOwners = map[types.UID]bool{}
	}
	p.refusedOwners[owner] = true
}

// wasRejected reports whether the last creation for an owner was rejected. [MachineWriter.CreateAll] calls it.
func (p *Pending) wasRejected(owner types.UID) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusedOwners[owner]
}

// Created records that a Machine was created for an owner. [MachineWriter] calls it after it has created the Machine.
func (p *Pending) Created(owner types.UID, name string, now time.Time) {
	p.created.Add(owner, name, now)
}

// Deleted records that a Machine of an owner was deleted.
func (p *Pending) Deleted(owner types.UID, name string, now time.Time) {
	p.deleted.Add(owner, name, now)
}

// Settle marks members that were deleted and returns the names of created Machines that the cache does not show yet. If
// a Machine is missing in the cache for a long time, Settle reads it with live to check whether it was deleted before
// the cache could show it. The controllers call it when they have read their Machines from the cache.
func (p *Pending) Settle(ctx context.Context, live client.Reader, owner client.Object, members OwnedMachines, now time.Time) ([]string, error) {
	at := map[string]int{}
	for i, m := range members {
		at[m.Name] = i
	}
	var created []string
	for _, n := range p.created.Settle(owner.GetUID(), func(name string) bool { _, shown := at[name]; return shown }) {
		if now.Sub(n.Since) < PendingRecheck {
			created = append(created, n.Name)
			continue
		}
		err := live.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: n.Name}, &clusterv1.Machine{})
		switch {
		case err == nil:
			created = append(created, n.Name)
		case !apierrors.IsNotFound(err):
			return nil, err
		default:
			p.created.Settle(owner.GetUID(), func(name string) bool { return name == n.Name })
		}
	}
	for _, n := range p.deleted.Settle(owner.GetUID(), func(name string) bool {
		i, exists := at[name]
		return !exists || members[i].Deleted
	}) {
		members[at[n.Name]].Deleted = true
	}
	return created, nil
}
