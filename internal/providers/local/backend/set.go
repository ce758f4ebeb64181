package backend

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Backend is one way to make the networks and machines of clusters.
type Backend struct {
	Networks Networks
	Machines Machines
	// Scripts is nil where no machine is scripted.
	Scripts Scripts
	Watcher Watcher
	// Balancers is nil where nothing leads to control planes on machines.
	Balancers Balancers
	// Etcds is nil where no member of etcd can be reached through its machine.
	Etcds Etcds
	// Forget ends what this process keeps for a LocalCluster whose object is gone, as after a move; nil: what is kept goes with a finalizer
	// or not at all.
	Forget func(cluster types.NamespacedName) error
	// Remember notes which Cluster a LocalCluster is of, so that Forget finds what it had; nil: Forget needs no such note.
	Remember func(ref Ref)
	// Sweeper is nil where nothing outlives its object.
	Sweeper Sweeper
	// Faults returns the backend with what the annotations of an object ask to go wrong; nil: nothing can be asked for.
	Faults func(annotations map[string]string) Backend
}

// Set is the backends that this process offers, by the member of spec.backend that chooses them.
type Set map[string]Backend

// Choose returns the backend that an object with these annotations names. It is the one place where one is chosen; the
// error is a fault.
func (s Set) Choose(name string, annotations map[string]string) (Backend, error) {
	b, ok := s[name]
	switch {
	case !ok:
		return b, fault.New(fault.Unreachable, "BackendNotOffered", "This process does not offer the backend %s: choose another one", name)
	case b.Faults != nil:
		b = b.Faults(annotations)
	}
	return b, nil
}

// Forget ends what all of them keep for a LocalCluster that is gone.
func (s Set) Forget(cluster types.NamespacedName) error {
	var errs []error
	for _, b := range s {
		if b.Forget != nil {
			errs = append(errs, b.Forget(cluster))
		}
	}
	return errors.Join(errs...)
}

// Remember notes in all of them which Cluster a LocalCluster is of.
func (s Set) Remember(ref Ref) {
	for _, b := range s {
		if b.Remember != nil {
			b.Remember(ref)
		}
	}
}

// Sweep implements [Sweeper] for all of them.
func (s Set) Sweep(ctx context.Context, keep Keep) error {
	var errs []error
	for _, b := range s {
		if b.Sweeper != nil {
			errs = append(errs, b.Sweeper.Sweep(ctx, keep))
		}
	}
	return errors.Join(errs...)
}

// Watch implements [Watcher] for all of them.
func (s Set) Watch(ctx context.Context, handle func(Event)) error {
	ended := make(chan error, len(s))
	for _, b := range s {
		go func() { ended <- b.Watcher.Watch(ctx, handle) }()
	}
	var failed error
	for range s {
		if err := <-ended; err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}
