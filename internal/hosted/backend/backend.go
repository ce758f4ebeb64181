package backend

import (
	"context"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
)

// ControlPlanes runs control planes, which are identified by name, for the HostedControlPlane controller. A new kind of
// backend implements it.
type ControlPlanes interface {
	// Capabilities returns the static properties of control planes of this backend.
	Capabilities(p policy.Configuration) Capabilities
	// Status returns the state of a control plane. Exists is false if it was never started.
	Status(ctx context.Context, name string) (ControlPlane, error)
	// Start starts a control plane with this configuration and these files of CAs and keys, or updates a
	// running one. It does not wait for the API server.
	Start(ctx context.Context, name string, cfg processconfig.Config, files map[string][]byte) error
	// Count returns the number of control planes, in the namespace and in total.
	Count(ctx context.Context, namespace string) (own, all int, err error)
	// Remove stops a control plane and deletes its data.
	Remove(ctx context.Context, name string) error
	// Subscribe calls changed with the name of a control plane when it starts, exits or becomes ready, until
	// cancel is called.
	Subscribe(changed func(name string)) (cancel func())
}

// Endpoints chooses the endpoints of control planes that do not use the endpoint of the infrastructure
// ([Capabilities.OwnEndpoints]). The backends of packages statefulset and simulated implement it.
type Endpoints interface {
	// Reserve returns a free endpoint, which is always the same for a name. The argument wanted is the
	// present endpoint of the control plane, if any. A zero result means that the endpoint is not known yet
	// ([ControlPlane.EndpointProblem]); an event follows when it is.
	Reserve(ctx context.Context, name string, wanted clusterv1.APIEndpoint) (clusterv1.APIEndpoint, error)
}

// ControlPlane is the observed state of a control plane.
type ControlPlane struct {
	// Exists is false if there is neither a process nor data.
	Exists bool
	// Reserved means that other resources exist, usually an endpoint. Remove deletes these as well.
	Reserved bool
	// Endpoint is the address of a control plane that chooses its endpoint itself ([Capabilities.OwnEndpoints]).
	// EndpointProblem is the reason why it is not known.
	Endpoint        clusterv1.APIEndpoint
	EndpointProblem string
	// Running means that the control plane runs, Ready that its API server is ready, and EtcdReady that its
	// etcd is ready.
	Running, Ready, EtcdReady bool
	// PID of the process. Zero means that there is none.
	PID int
	// Local is the address and port at which this program reaches the API server, on loopback or in the Pod
	// network. It is empty if unknown.
	Local string
	Since time.Time
	// Version of Kubernetes that runs.
	Version string
	// Data describes the database, whether or not the control plane runs.
	Data processconfig.Data
	// RunMode names the only components that run, as in the configuration of the last Start. It is empty if all
	// components run or if the process has another configuration.
	RunMode string
	// Config is the hash of the configuration of the last Start. It is empty if this program has not called
	// Start yet, in which case only Running is reliable.
	Config string
	// Restarts counts restarts after failures. LastExit describes the last exit.
	Restarts int
	LastExit string
	// Log contains the last log lines before the exit.
	Log string
	// Problem is the known reason why the control plane does not run or its API server is not ready.
	Problem string
	// Pending describes a change that Start would make to a running control plane with the current
	// configuration. Empty means none.
	Pending string
	// InvalidRequest describes a part of the request that Start would reject. Empty means none.
	InvalidRequest string
}

// Backend is one way to run control planes. The sibling packages process, statefulset and simulated create one each.
type Backend struct {
	ControlPlanes ControlPlanes
	// Endpoints is nil if control planes use the endpoint of the infrastructure.
	Endpoints Endpoints
	// Folder returns the directory of a control plane's data on this host, for restoring a snapshot. It is
	// nil if there is no such directory.
	Folder func(name string) processconfig.Folder
	// Stop stops the control plane until Start is called again. Its data is retained. It is nil if the
	// backend cannot stop control planes.
	Stop func(ctx context.Context, name string) error
	// Faults returns control planes with the faults that the annotations of an object request. It is nil if
	// the backend does not support faults.
	Faults func(annotations map[string]string) ControlPlanes
}

// Set contains the backends of this process, by the field of spec.backend that selects them. The manager fills it in at
// its start.
type Set map[string]Backend

// Choose returns the backend with this name, with the faults that the annotations request. All callers select
// backends through it. The error is a fault.
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

// RemoveOrphan removes the control plane of this name from the backends that may start control planes without their
// previous data ([Capabilities.EmptyStartEffect]). Otherwise it would block its port after its object is deleted.
// Other backends retain the data until the finalizer of the object removes it. The HostedControlPlane controller calls
// it when the object does not exist any more.
func (s Set) RemoveOrphan(ctx context.Context, p policy.Configuration, name string) error {
	for _, b := range s {
		if b.ControlPlanes.Capabilities(p).EmptyStartEffect == "" {
			continue
		}
		current, err := b.ControlPlanes.Status(ctx, name)
		if err != nil {
			return err
		}
		if !current.Exists { // subscribers are notified of a removal, and call this function again
			continue
		}
		if err := b.ControlPlanes.Remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
