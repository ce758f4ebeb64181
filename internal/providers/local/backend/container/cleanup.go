package container

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/custody"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/backend/removal"
)

// RemoveInstance removes every container (with its volume) and every network of an instance, as its records say what that is, and
// nothing else; tell hears how many of how many are gone, from one goroutine at a time. Nothing there is no error; what Docker is
// still busy with is waited for, ten seconds at most. The error is a fault of kind Unreachable if Docker does not answer, else all
// that went wrong.
func RemoveInstance(ctx context.Context, book *custody.Book, tell func(gone, of int)) error {
	e, err := New(Config{Instance: book.Instance(), Custody: book})
	if err != nil {
		return err
	}
	defer e.Close()
	none := func(backend.Owner) bool { return false }
	for attempt := 1; ; attempt++ {
		err := e.sweep(ctx, backend.Keep{Machine: none, Network: none}, tell)
		if !busy(err) || attempt == busyAttempts {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(busyPause):
		}
	}
}

// How often, and after which pauses, what Docker is busy with is removed once more.
const (
	busyAttempts = 50
	busyPause    = 200 * time.Millisecond
)

func busy(err error) bool {
	f := fault.As(err)
	return f != nil && (f.Kind == fault.Conflict || f.Reason == ReasonNetworkInUse)
}

// Sweep implements backend.Sweeper: it removes containers (with their volumes) and networks of this instance.
func (e *Engine) Sweep(ctx context.Context, keep backend.Keep) error {
	return e.sweep(ctx, keep, func(int, int) {})
}

func (e *Engine) sweep(ctx context.Context, keep backend.Keep, tell func(gone, of int)) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	own, err := e.own(ctx)
	if err != nil {
		return err
	}
	var containers, volumes, networks []func() error
	for _, c := range own.containers {
		if m := machineOf(strings.TrimPrefix(c.Names[0], "/"), c.ID, c.Labels); !keep.Machine(m.Owner) {
			containers = append(containers, e.stillOwn(itemOf(c), func() error { return e.removeContainer(ctx, ownContainer{id: m.ID, name: m.Name}) }))
		}
	}
	for _, v := range own.volumes { // a container may have lost its volume, and a volume its container
		if !keep.Machine(machineOf(v.name, "", v.labels).Owner) {
			volumes = append(volumes, e.stillOwn(v.item, func() error { return e.removeVolume(ctx, v.ownVolume) }))
		}
	}
	for _, n := range own.networks {
		if !keep.Network(machineOf(n.Name, n.ID, n.Labels).Owner) {
			networks = append(networks, e.stillOwn(networkItem(n), func() error { return e.removeNetwork(ctx, ownNetwork{id: n.ID, name: n.Name}) }))
		}
	}
	r := removal.New(len(containers)+len(volumes)+len(networks), tell)
	for _, stage := range [][]func() error{containers, volumes, networks} { // what is in use cannot be removed
		r.Remove(stage)
	}
	return errors.Join(append(r.Errors(), e.prune(ctx))...)
}

// stillOwn does something to what is still this instance's: the objects of what was handed over since it was listed are gone.
func (e *Engine) stillOwn(i custody.Item, do func() error) func() error {
	return func() error {
		has, err := e.has(i)
		if err != nil || !has {
			return err
		}
		return do()
	}
}
