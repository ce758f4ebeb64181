package simulated

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// FaultInjector sets the faults of the API servers of a backend. The server of simulated clusters implements it.
type FaultInjector interface {
	// Faults returns the faults of an API server.
	Faults(name string) simulated.Faults
	// SetFaults sets the faults of an API server.
	SetFaults(name string, f simulated.Faults)
}

// WithFaults wraps a backend with the faults that annotations of a HostedControlPlane request. The manager wraps the
// backend of simulated control planes with it. The controller then selects the backend of each object with
// [backend.Set.Choose], and Start applies the faults.
func WithFaults(inner backend.Backend, servers FaultInjector) backend.Backend {
	out := inner
	out.Faults = func(annotations map[string]string) backend.ControlPlanes {
		wanted, problem := desired(annotations)
		return faultyControlPlanes{ControlPlanes: inner.ControlPlanes, servers: servers, desired: wanted, problem: problem}
	}
	return out
}

// prefix is the prefix of all fault annotations.
const prefix = "simulated.controlplane.slipway.dev/"

// desired parses the annotations. An invalid annotation causes no fault and returns a problem.
func desired(annotations map[string]string) (f simulated.Faults, problem error) {
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		value, use := annotations[name], ""
		length, err := time.ParseDuration(value)
		isLength := err == nil && length >= 0
		code, err := strconv.Atoi(value)
		isCode := err == nil && code >= 400 && code <= 599
		switch {
		case !strings.HasPrefix(name, prefix):
		case name == hostedv1.APIDownAnnotation && value == "always":
			f.Down = -1
		case name == hostedv1.APIDownAnnotation && isLength:
			f.Down = length
		case name == hostedv1.APISlowAnnotation && isLength:
			f.Slow = length
		case name == hostedv1.APIErrorsAnnotation && isCode:
			f.Status = code
		case name == hostedv1.APIDownAnnotation:
			use = "a time such as 1m, or always"
		case name == hostedv1.APISlowAnnotation:
			use = "a time such as 500ms"
		case name == hostedv1.APIErrorsAnnotation:
			use = "an HTTP status from 400 to 599"
		default:
			problem = cmp.Or(problem, error(fault.New(fault.Invalid, reasonUnknown, "The annotation %s is not known: use %s, %s or %s", name,
				hostedv1.APIDownAnnotation, hostedv1.APISlowAnnotation, hostedv1.APIErrorsAnnotation)))
		}
		if use != "" {
			problem = cmp.Or(problem, error(fault.New(fault.Invalid, reasonUnknown, "The annotation %s has %q: use %s", name, value, use)))
		}
	}
	return f, problem
}

// reasonUnknown is the reason for invalid annotations.
const reasonUnknown = "FaultUnknown"

// faultyControlPlanes wraps the control planes of a backend with the faults of one object. [backend.Set.Choose] creates
// them through the backend of [WithFaults].
type faultyControlPlanes struct {
	backend.ControlPlanes
	servers FaultInjector
	desired simulated.Faults
	// problem is the first problem of the annotations, or nil.
	problem error
}

func (c faultyControlPlanes) Capabilities(allowed policy.Configuration) backend.Capabilities {
	t := c.ControlPlanes.Capabilities(allowed)
	if t.Started != nil {
		started := *t.Started
		started.Ready = started.Ready && c.desired.Down == 0 && c.desired.Status == 0
		t.Started = &started
	}
	return t
}

func (c faultyControlPlanes) Status(ctx context.Context, name string) (backend.ControlPlane, error) {
	out, err := c.ControlPlanes.Status(ctx, name)
	if err != nil || !out.Running {
		return out, err
	}
	current := c.servers.Faults(name)
	switch {
	case current.Down != 0 && !out.Ready:
		out.Problem = "The API server does not respond, because annotation " + hostedv1.APIDownAnnotation + " makes it unreachable"
	case current.Status != 0:
		out.Ready = false
		out.Problem = fmt.Sprintf("The API server responds to every request with status %d, because annotation %s requests it", current.Status, hostedv1.APIErrorsAnnotation)
	}
	switch {
	case current != c.desired:
		out.Pending = change(c.desired)
	case c.problem != nil:
		out.InvalidRequest = "report the invalid annotation"
	}
	return out, nil
}

func (c faultyControlPlanes) Start(ctx context.Context, name string, cfg processconfig.Config, files map[string][]byte) error {
	if err := c.ControlPlanes.Start(ctx, name, cfg, files); err != nil {
		return err
	}
	if c.servers.Faults(name) != c.desired {
		c.servers.SetFaults(name, c.desired)
	}
	return c.problem // returned last, because the valid annotations apply
}

// change describes the change of an API server's faults.
func change(f simulated.Faults) string {
	down := "for " + f.Down.String()
	if f.Down < 0 {
		down = "forever"
	}
	answers := ""
	if f.Status != 0 {
		answers = fmt.Sprintf(", and respond with status %d", f.Status)
	}
	return fmt.Sprintf("make the API server unreachable %s and slower by %s%s: the annotations request it", down, f.Slow, answers)
}
