// Package faulty makes something go wrong with the control planes of a backend, on purpose.
//
// Does: puts itself around a backend, so that neither the backend nor the decisions know of faults, and makes of the
// annotations of an object what is to go wrong with it: an API server that is unreachable, slow, or answers with errors.
//
// Never: chooses a backend: only those that ask for it have faults.
//
// Read first: [Around].
package faulty

import (
	"context"
	"fmt"
	"strconv"
	"time"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/plane/workload"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/hosted/backend"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// Servers are the API servers of a backend.
type Servers interface {
	// Faults returns what is wrong with an API server on purpose.
	Faults(name string) simulated.Faults
	// SetFaults changes it.
	SetFaults(name string, f simulated.Faults)
}

// Around returns the backend with the faults that annotations ask for.
func Around(inner backend.Backend, servers Servers) backend.Backend {
	out := inner
	out.Faults = func(annotations map[string]string) backend.ControlPlanes {
		return controlPlanes{ControlPlanes: inner.ControlPlanes, servers: servers, desired: desired(annotations)}
	}
	return out
}

// desired is what the annotations ask for.
func desired(annotations map[string]string) simulated.Faults {
	length := func(annotation string) time.Duration {
		d, err := time.ParseDuration(annotations[annotation])
		if err != nil || d < 0 {
			return 0
		}
		return d
	}
	f := simulated.Faults{Down: length(hostedv1.APIDownAnnotation), Slow: length(hostedv1.APISlowAnnotation)}
	if annotations[hostedv1.APIDownAnnotation] == "always" {
		f.Down = -1
	}
	if code, err := strconv.Atoi(annotations[hostedv1.APIErrorsAnnotation]); err == nil && code >= 400 && code <= 599 {
		f.Status = code
	}
	return f
}

// controlPlanes are those of a backend, for one object and what is to go wrong with it.
type controlPlanes struct {
	backend.ControlPlanes
	servers Servers
	desired simulated.Faults
}

// Terms implements backend.ControlPlanes.
func (c controlPlanes) Terms(allowed policy.Configuration) backend.Terms {
	t := c.ControlPlanes.Terms(allowed)
	if t.Started != nil {
		started := *t.Started
		started.Ready = started.Ready && c.desired.Down == 0
		t.Started = &started
	}
	return t
}

// Status implements backend.ControlPlanes.
func (c controlPlanes) Status(ctx context.Context, name string) (backend.ControlPlane, error) {
	out, err := c.ControlPlanes.Status(ctx, name)
	if err != nil || !out.Running {
		return out, err
	}
	current := c.servers.Faults(name)
	if current.Down != 0 && !out.Ready {
		out.Problem = "The API server does not answer: an annotation makes it unreachable"
	}
	if current != c.desired {
		out.Pending = change(c.desired)
	}
	return out, nil
}

// Start implements backend.ControlPlanes.
func (c controlPlanes) Start(ctx context.Context, name string, cfg workload.Config, files map[string][]byte) error {
	if err := c.ControlPlanes.Start(ctx, name, cfg, files); err != nil {
		return err
	}
	if c.servers.Faults(name) != c.desired {
		c.servers.SetFaults(name, c.desired)
	}
	return nil
}

// change says what is made of an API server.
func change(f simulated.Faults) string {
	down := "for " + f.Down.String()
	if f.Down < 0 {
		down = "forever"
	}
	answers := ""
	if f.Status != 0 {
		answers = fmt.Sprintf(", and answer with status %d", f.Status)
	}
	return fmt.Sprintf("make the API server unreachable %s and slower by %s%s: the annotations say so", down, f.Slow, answers)
}
