package hosts

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// hostCheck is the result of one check of a host. decide and report read it.
type hostCheck struct {
	// At is the time of the check.
	At time.Time
	// Generation of the SSHHost that was checked.
	Generation int64
	// Fault is the error of the connection. Nil: the host was checked.
	Fault *fault.Fault
	// Failures is the number of consecutive checks that failed.
	Failures int
	Facts    remote.Facts
	// Record is the record on the host. Nil: there is none.
	Record *remote.Record
	// InvalidRecord is the message about a file that is not a record. Empty: there is none.
	InvalidRecord string
	// Preflight is set if the preflight checks ran, which they do on free hosts only. Findings are their findings.
	Preflight bool
	Findings  []remote.Finding
}

// checks remembers the last check of each host. They are lost with the process, so that each host is then checked
// again. observe reads them, and readRequested stores each new one.
type checks struct {
	mu   sync.Mutex
	last map[client.ObjectKey]hostCheck
}

func newChecks() *checks { return &checks{last: map[client.ObjectKey]hostCheck{}} }

func (c *checks) get(key client.ObjectKey) *hostCheck {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.last[key]; ok {
		return &found
	}
	return nil
}

func (c *checks) put(key client.ObjectKey, k hostCheck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[key] = k
}

func (c *checks) drop(key client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, key)
}

// checkTimeout limits a check, so that hosts that do not respond do not occupy all workers.
const checkTimeout = 45 * time.Second

// connect connects to the host of an object.
func (c *controller) connect(ctx context.Context, o *infrav1.SSHHost) (Host, error) {
	return c.connectFor(ctx, o, "")
}

// connectFor connects to a host that is changed for a claim.
func (c *controller) connectFor(ctx context.Context, o *infrav1.SSHHost, claimID string) (Host, error) {
	target, err := inventory.Target(ctx, c.secrets, o, c.Policy)
	if err != nil {
		return nil, err
	}
	target.ClaimID = claimID
	return c.Connector.Connect(ctx, target)
}

// check checks a host. Errors that are no faults concern the management cluster. readRequested calls it if decide
// requests a read.
func (c *controller) check(ctx context.Context, o *infrav1.SSHHost) (hostCheck, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	k := hostCheck{Generation: o.Generation}
	h, err := c.connect(ctx, o)
	if err == nil {
		err = readHost(ctx, h, o, &k)
	}
	if f := fault.As(err); f != nil && f.Reason == remote.ReasonBusy {
		return k, err // nothing is known about the host
	}
	k.At = c.now()
	if last := c.checks.get(client.ObjectKeyFromObject(o)); err != nil {
		k.Failures = 1
		if last != nil && last.Generation == k.Generation {
			k.Failures += last.Failures
		}
	}
	if k.Fault = fault.As(err); k.Fault == nil && fault.KindOf(err) == fault.Unreachable {
		k.Fault = fault.New(fault.Unreachable, remote.ReasonUnreachable, "host %s does not respond", o.Spec.Address).From(err)
	}
	if k.Fault != nil {
		err = nil
	}
	return k, err
}

func readHost(ctx context.Context, h Host, o *infrav1.SSHHost, k *hostCheck) (err error) {
	if k.Facts, err = h.Facts(ctx); err != nil {
		return err
	}
	k.Record, err = h.ReadRecord(ctx)
	if f := fault.As(err); f != nil && f.Reason == remote.ReasonInvalidRecord {
		k.InvalidRecord, err = f.Message, nil
	}
	if err != nil || !isFree(o, *k) {
		return err
	}
	// A host with containerd is one that was prepared with all programs of a node. If it lacks some, the checks for a bundle name
	// what prevents its installation.
	installed := inventory.HasContainerd(k.Facts.ContainerRuntime)
	k.Findings, err = h.Preflight(ctx, remote.PreflightOptions{ManagedBundle: !installed})
	if err == nil && installed && k.lacksPrograms() {
		k.Findings, err = h.Preflight(ctx, remote.PreflightOptions{ManagedBundle: true})
	}
	k.Preflight = err == nil
	return err
}

// lacksPrograms reports whether programs of a node are missing on a host that has a container runtime.
func (k hostCheck) lacksPrograms() bool {
	return slices.ContainsFunc(k.Findings, func(f remote.Finding) bool { return f.Check == remote.CheckPrograms })
}

// isFree reports whether nothing uses a host, so that the preflight checks are meaningful.
func isFree(o *infrav1.SSHHost, k hostCheck) bool {
	claim := o.Status.Claim
	return (claim == nil || claim.ClaimID != o.Status.ConfirmedClaimID) && k.Fault == nil && k.Record == nil && k.InvalidRecord == "" && !k.Facts.KubeletRunning
}

// hasFatal reports whether a finding prevents the host from becoming a node. decide does not let such a host be used.
func (k hostCheck) hasFatal() bool {
	return slices.ContainsFunc(k.Findings, func(f remote.Finding) bool { return f.Fatal })
}

// problems returns the findings, one on each line: the fatal ones, or the others. Waits and conditions show them.
func (k hostCheck) problems(fatal bool) string {
	var out []string
	for _, f := range k.Findings {
		if f.Fatal == fatal {
			out = append(out, "* "+inventory.Sentence(f.String()))
		}
	}
	return strings.Join(out, "\n")
}
