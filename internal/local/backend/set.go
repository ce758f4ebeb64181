package backend

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Backend is one implementation of cluster networks and machines.
type Backend struct {
	Networks Networks
	Machines Machines
	// Scripts is nil if machines are not scripted.
	Scripts Scripts
	// Kubelets is nil if machines have no kubelets whose state could be read.
	Kubelets Kubelets
	// Watcher must not be nil, because [Set.Watch] calls it.
	Watcher Watcher
	// Balancers is nil if the backend has no load balancers for control planes on machines.
	Balancers Balancers
	// EtcdRecovery is nil if etcd members cannot be reached through their machines.
	EtcdRecovery EtcdRecovery
	// DeleteState deletes the state that this process retains for a LocalCluster whose object is gone, for example
	// after a move. Nil: there is no such state, or a finalizer ensures its deletion.
	DeleteState func(cluster types.NamespacedName) error
	// RecordCluster records the Cluster of a LocalCluster for DeleteState. Nil: DeleteState does not need it.
	RecordCluster func(ref Ref)
	// Sweeper is nil if no resource outlives its object.
	Sweeper Sweeper
	// Faults returns the backend with the faults that the annotations of an object request. Nil: faults cannot be
	// requested.
	Faults func(annotations map[string]string) Backend
}

// Set contains the backends of this process by the member of spec.backend that selects them. The provider (package
// local) creates it; its controllers choose a backend from it for each object.
type Set map[string]Backend

// Choose returns the backend that an object with these annotations selects. Every selection goes through it. The error
// is a fault. The controllers of LocalClusters and LocalMachines call it in each reconciliation.
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

// DeleteState deletes the state that the backends retain for a deleted LocalCluster. The LocalCluster controller calls
// it when the object is gone.
func (s Set) DeleteState(cluster types.NamespacedName) error {
	var errs []error
	for _, b := range s {
		if b.DeleteState != nil {
			errs = append(errs, b.DeleteState(cluster))
		}
	}
	return errors.Join(errs...)
}

// RecordCluster records the Cluster of a LocalCluster in all backends. The LocalCluster controller calls it for each
// simulated LocalCluster that it sees, even if it is paused.
func (s Set) RecordCluster(ref Ref) {
	for _, b := range s {
		if b.RecordCluster != nil {
			b.RecordCluster(ref)
		}
	}
}

// Sweep implements [Sweeper] for all backends.
func (s Set) Sweep(ctx context.Context, keep InUse) error {
	var errs []error
	for _, b := range s {
		if b.Sweeper != nil {
			errs = append(errs, b.Sweeper.Sweep(ctx, keep))
		}
	}
	return errors.Join(errs...)
}

// Watch implements [Watcher] for all backends.
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
