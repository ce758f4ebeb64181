package container

import (
	"context"
	"errors"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// RemoveInstance removes every container (with its volume) and every network that the records of an instance assign to
// it, and nothing else, for `slipway down --delete`. It calls tell with the number of removed resources and the total,
// from one goroutine at a time. It returns no error if there is nothing to remove, and waits up to ten seconds for
// resources that are in use. The error is a fault of kind Unreachable if Docker does not respond, else all errors
// joined.
func RemoveInstance(ctx context.Context, book *hosttransfer.Store, tell func(gone, of int)) error {
	e, err := New(Config{Instance: book.Instance(), Ownership: book})
	if err != nil {
		return err
	}
	defer e.Close()
	none := func(backend.Owner) bool { return false }
	for attempt := 1; ; attempt++ {
		err := e.sweep(ctx, backend.InUse{Machine: none, Network: none}, tell)
		if !isBusy(err) || attempt == busyAttempts {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(busyPause):
		}
	}
}

// Number and interval of the attempts to remove resources that are in use.
const (
	busyAttempts = 50
	busyPause    = 200 * time.Millisecond
)

func isBusy(err error) bool {
	f := fault.As(err)
	return f != nil && (f.Kind == fault.Conflict || f.Reason == reasonNetworkInUse)
}

// Sweep implements backend.Sweeper: it removes containers (with their volumes) and networks of this instance that are
// not in use. The provider calls it once when the manager starts.
func (e *Engine) Sweep(ctx context.Context, keep backend.InUse) error {
	return e.sweep(ctx, keep, func(int, int) {})
}

func (e *Engine) sweep(ctx context.Context, keep backend.InUse, tell func(gone, of int)) error {
	own, err := e.listAll(ctx)
	if err != nil {
		return err
	}
	var containers, volumes, networks []func() error
	for _, c := range own.containers {
		if m := machineOf(summaryName(c), c.ID, c.Labels); !keep.Machine(m.Owner) {
			containers = append(containers, e.ifUnused(ctx, itemOf(c), func() bool { return keep.Machine(m.Owner) }, func(ctx context.Context) error { return e.removeContainer(ctx, ownContainer{id: m.ID, name: m.Name}) }))
		}
	}
	for _, v := range own.volumes { // a container may have lost its volume, and a volume its container
		if owner := machineOf(v.Name, "", v.Labels).Owner; !keep.Machine(owner) {
			volumes = append(volumes, e.ifUnused(ctx, volumeItem(v), func() bool { return keep.Machine(owner) }, func(ctx context.Context) error { return e.removeVolume(ctx, ownVolume{name: v.Name}) }))
		}
	}
	for _, n := range own.networks {
		if owner := machineOf(n.Name, n.ID, n.Labels).Owner; !keep.Network(owner) {
			networks = append(networks, e.ifUnused(ctx, networkItem(n), func() bool { return keep.Network(owner) }, func(ctx context.Context) error { return e.removeNetwork(ctx, ownNetwork{id: n.ID, name: n.Name}) }))
		}
	}
	err = backend.Remove([][]func() error{containers, volumes, networks}, tell) // resources in use cannot be removed
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	return errors.Join(err, e.prune(ctx))
}

// listAll lists the host resources of this instance.
func (e *Engine) listAll(ctx context.Context) (hostResources, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	return e.listOwnResources(ctx, anyInstanceFilter())
}

// ifUnused calls do only if the item still belongs to this instance and no object uses it: since it was listed, it may have
// been transferred, or its object may have been restored. Each call has its own timeout, because an instance may have
// hundreds of items.
func (e *Engine) ifUnused(ctx context.Context, i hosttransfer.Item, inUse func() bool, do func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := withCallTimeout(ctx)
		defer cancel()
		has, err := readRecords(e.ownership.Ownership).owns(i)
		if err != nil || !has || inUse() {
			return err
		}
		return do(ctx)
	}
}
