package backend

import (
	"context"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/workload"
	"github.com/slipwayhq/slipway/internal/policy"
)

// ControlPlanes runs control planes, by name.
type ControlPlanes interface {
	// Terms says what there is to know of control planes before anything is read or started.
	Terms(p policy.Configuration) Terms
	// Status returns a control plane; one that was never started does not exist.
	Status(ctx context.Context, name string) (ControlPlane, error)
	// Start starts a control plane with this configuration and these files of authorities and keys, or changes one that
	// runs to be as they say. It does not wait until the API server answers.
	Start(ctx context.Context, name string, cfg workload.Config, files map[string][]byte) error
	// Count returns how many there are in the namespace and in all.
	Count(ctx context.Context, namespace string) (own, all int, err error)
	// Remove stops a control plane and removes its data.
	Remove(ctx context.Context, name string) error
	// Subscribe calls changed with the name of each control plane that starts, dies, or begins to answer, until cancel is
	// called.
	Subscribe(changed func(name string)) (cancel func())
}

// Endpoints chooses where control planes listen, where they choose that themselves ([Terms.Listens]).
type Endpoints interface {
	// Reserve returns an endpoint that is free, always the same for a name. Wanted is the one that the control plane has already, where
	// it has one. The zero value: an event tells when it is known ([ControlPlane.EndpointProblem]).
	Reserve(ctx context.Context, name string, wanted clusterv1.APIEndpoint) (clusterv1.APIEndpoint, error)
}

// ControlPlane is a control plane as it is.
type ControlPlane struct {
	// Exists is false where there is neither a process nor data.
	Exists bool
	// Reserved tells that something else of it is there, an endpoint most often: Remove removes that, too.
	Reserved bool
	// Endpoint is the one that leads to it where it has one of its own ([Listens.Elsewhere]); EndpointProblem is why it is not known.
	Endpoint        clusterv1.APIEndpoint
	EndpointProblem string
	// Running tells whether it runs, Ready whether its API server answers, EtcdReady whether its etcd does.
	Running, Ready, EtcdReady bool
	// PID of its process; zero: it has none.
	PID int
	// Local is the address and port where this program reaches the API server: on loopback, or in the network of Pods; empty where it is
	// not known.
	Local string
	Since time.Time
	// Version of Kubernetes that runs.
	Version string
	// Data is what is known of the database, whether or not the control plane runs.
	Data workload.Data
	// Only is what alone runs of one that runs with the configuration that was last asked for, as in it; empty: everything, or another one.
	Only string
	// Config is the hash of the configuration that was last asked for; empty where this program has not asked yet,
	// so that nothing is known of the control plane but that it runs.
	Config string
	// Restarts counts how often it was started again after it died; LastExit tells how.
	Restarts int
	LastExit string
	// Log is the last lines it wrote before it died.
	Log string
	// Problem is why it does not run, or why the API server of one that runs does not answer, where that is known.
	Problem string
	// Pending is what Start would change about one that runs with its configuration, as an action; empty: nothing.
	Pending string
	// Unclear is what Start would refuse of what was asked for, as an action; empty: nothing.
	Unclear string
}

// Backend is one way to run control planes.
type Backend struct {
	ControlPlanes ControlPlanes
	// Endpoints is nil where control planes listen where they are told to.
	Endpoints Endpoints
	// Folder is where the data of a control plane is on this host, so that a snapshot of it can be restored; nil: it has none.
	Folder func(name string) workload.Folder
	// Stop ends the control plane, and keeps it from being started until it is asked for again; its data stays. Nil: it cannot.
	Stop func(ctx context.Context, name string) error
	// Faults returns the control planes with what the annotations of an object ask to go wrong; nil: nothing can be asked for.
	Faults func(annotations map[string]string) ControlPlanes
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
		b.ControlPlanes = b.Faults(annotations)
	}
	return b, nil
}

// Drop removes the control plane of this name from the backends whose control planes may be started empty: it would keep its port after
// its object is gone. The data of others is kept; they go with their finalizer, or not at all.
func (s Set) Drop(ctx context.Context, p policy.Configuration, name string) error {
	for _, b := range s {
		if b.ControlPlanes.Terms(p).Emptied == "" {
			continue
		}
		have, err := b.ControlPlanes.Status(ctx, name)
		if err != nil {
			return err
		}
		if !have.Exists { // to remove it is told to who listens, which leads here again
			continue
		}
		if err := b.ControlPlanes.Remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
