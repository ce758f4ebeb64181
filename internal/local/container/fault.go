package container

import (
	"context"
	"errors"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of the faults that this package returns. Conditions of LocalClusters and LocalMachines contain them, so their
// values must not change.
const (
	// reasonUnreachable: Docker does not respond.
	reasonUnreachable = "DockerUnreachable"
	// reasonImageAbsent: the node image is not on this host.
	reasonImageAbsent = "ImageAbsent"
	// reasonNetworkAbsent: the cluster's network has been removed.
	reasonNetworkAbsent = "NetworkAbsent"
	// reasonNetworkInUse: containers are connected to the network that is to be removed.
	reasonNetworkInUse = "NetworkInUse"
	// reasonNoAddress: the network has no address left for a node.
	reasonNoAddress = "NoAddressLeft"
	// ReasonNoSubnet: no range is free on this host, or the requested range is taken. Package managementnode returns
	// it, too.
	ReasonNoSubnet = "SubnetTaken"
	// reasonRefused: Docker rejects the request.
	reasonRefused = "DockerRefused"
	// reasonError: any other error from Docker.
	reasonError = "DockerError"
	// reasonNotRunning: the machine is not running.
	reasonNotRunning = "MachineNotRunning"
	// reasonForeign: the name is used by something that does not belong to the object.
	reasonForeign = "NotOwned"
	// reasonTooMany: the operator's limit is reached.
	reasonTooMany = "MaximumReached"
	// reasonNoNodeImage: the image of the container is not a node image.
	reasonNoNodeImage = "NotANodeImage"
	// reasonMountRefused: the path cannot be mounted, even if the operator allows it.
	reasonMountRefused = "MountRefused"
)

// fault converts an error of Docker to a fault of the matching kind. The calls to Docker in this package pass their
// errors to it. doing describes the failed operation, for the log.
func (e *Engine) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	if fault.As(err) != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	wrapped := fmt.Errorf("%s: %w", doing, err)
	switch {
	case errors.Is(err, context.Canceled):
		return wrapped
	case e.unreachable(err):
		return e.unreachableFault().From(wrapped)
	case cerrdefs.IsNotFound(err):
		return fault.New(fault.Gone, "NotFound", "Docker does not have it").From(wrapped)
	case cerrdefs.IsConflict(err):
		return fault.New(fault.Conflict, "DockerConflict", "Docker is busy with it").From(wrapped)
	case cerrdefs.IsInvalidArgument(err):
		return fault.New(fault.Invalid, reasonRefused, "Docker refuses: %s", err.Error()).From(wrapped)
	}
	return fault.New(fault.Transient, reasonError, "%s: %s; retrying", doing, err.Error()).From(err)
}

// unreachableFault returns the fault for a Docker Engine that does not respond, with advice for the environment of this
// program.
func (e *Engine) unreachableFault() *fault.Fault {
	if e.pod {
		return fault.New(fault.Unreachable, reasonUnreachable,
			"Docker does not respond at %s: this manager runs in a Pod, which has no Docker; use another infrastructure provider or the simulated backend, "+
				"or create clusters with nodes in containers with slipway up on a host with Docker", e.api.DaemonHost())
	}
	return fault.New(fault.Unreachable, reasonUnreachable,
		"Docker does not respond at %s: install it or start it (systemctl start docker), and check that this user may use it; "+
			"work continues automatically once it responds", e.api.DaemonHost())
}

// unreachable reports whether Docker did not respond. A daemon that is stopped while it sends a response closes the
// connection.
func (e *Engine) unreachable(err error) bool {
	return client.IsErrConnectionFailed(err) || fault.KindOf(err) == fault.Unreachable ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || cerrdefs.IsUnavailable(err)
}
