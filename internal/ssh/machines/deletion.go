package machines

import (
	"time"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	coremachines "github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// decideDeletion releases the host and waits until it is clean. A quarantined host needs the operator, and cannot be claimed
// until then, so it does not hold the deletion.
func decideDeletion(s snapshot, p *reconciler.Plan) {
	h := s.Host
	force := s.Object.Annotations[infrav1.ForceReleaseAnnotation] == "true"
	switch {
	case h == nil && len(s.Recorded) > 0:
		for _, recorded := range s.Recorded {
			p.Do(releaseHost{Host: nameOf(recorded), Why: "it has the record of this machine, which is being deleted"})
		}
		p.RecheckIn(cacheRecheck)
	case h == nil && !force && s.wasProvisioned() && s.uncheckedHost() != nil:
		unchecked := s.uncheckedHost()
		p.WaitFor(reasonUnchecked, "Waiting for SSHHost %s to be checked, because it may have the record of this machine", unchecked.Name).
			For("SSHHost", nameOf(unchecked)).ToChange("status.state")
		p.RecheckIn(waitRecheck)
	case h == nil:
	case s.Preparing.Running:
		p.Do(cancelPreparation{Host: nameOf(h)})
		p.WaitFor(reasonReleasing, "Waiting for the preparation of SSHHost %s to be canceled", h.Name).For("SSHHost", nameOf(h)).ForTime()
		p.RecheckIn(hostRecheck)
	case !inventory.IsReleased(h.Status.Claim):
		p.Do(releaseHost{Host: nameOf(h), Why: "the SSHMachine is being deleted"})
		waitForRelease(s, p)
	case force, !inventory.IsConfirmed(h), h.Status.State == infrav1.SSHHostQuarantined:
	case h.Status.State == infrav1.SSHHostUnreachable:
		waitForUnreachable(s, p)
	default:
		waitForRelease(s, p)
	}
}

// waitForUnreachable waits until a released host can be reached, is released by force, or has been unreachable for too long.
func waitForUnreachable(s snapshot, p *reconciler.Plan) {
	h, end := s.Host, s.unreachableDeadline()
	switch {
	case end.IsZero():
		p.WaitFor(reasonUnreachable, "SSHHost %s cannot be cleaned, because it %s%s. If it is gone, annotate this SSHMachine with %s: \"true\"; "+
			"the host cannot be claimed until it responds and is clean", h.Name, unreachableText(h), since(h), infrav1.ForceReleaseAnnotation).For("SSHHost", nameOf(h)).ToChange("status.state")
	case s.Now.Before(end):
		p.WaitFor(reasonUnreachable, "SSHHost %s cannot be cleaned, because it %s%s. A health check replaces the Machine: the host is released without cleaning at %s, "+
			"and cannot be claimed until it responds and is clean", h.Name, unreachableText(h), since(h), end.UTC().Format(time.RFC3339)).For("SSHHost", nameOf(h)).ForTime()
		p.RecheckIn(end.Sub(s.Now))
	}
}

// defaultUnreachableTimeout is the default of spec.cleaning.unreachableTimeoutSeconds. A reboot takes less.
const defaultUnreachableTimeout = 5 * time.Minute

// unreachableDeadline returns the time at which the deletion no longer waits for a host that cannot be reached, because the owner
// of the Machine replaces it for a health check. The time is zero if only the annotation ends the wait, as for a Machine that a
// user deletes. The conditions of the Machine and the timeout are input of the tenant, who may set the annotation, too.
func (s snapshot) unreachableDeadline() time.Time {
	timeout := defaultUnreachableTimeout
	if n := s.Object.Spec.Cleaning.UnreachableTimeoutSeconds; n != nil {
		timeout = time.Duration(*n) * time.Second
	}
	m, since := s.Machine, s.Host.Status.StateSince
	if timeout <= 0 || since == nil || m == nil || m.DeletionTimestamp.IsZero() || !coremachines.IsRemediating(m) {
		return time.Time{}
	}
	return since.Add(timeout)
}

// uncheckedHost returns a host that is offered to the namespace and that was never checked, as after a restore. Nil: there is
// none.
func (s snapshot) uncheckedHost() *infrav1.SSHHost {
	for _, h := range s.Hosts {
		if h.Status.State == "" && h.DeletionTimestamp == nil && inventory.IsOffered(h, s.Namespace) {
			return h
		}
	}
	return nil
}

// unreachableText says why a host cannot be reached.
func unreachableText(h *infrav1.SSHHost) string {
	c := condition.Set(h.Status.Conditions).Get(infrav1.ReachableCondition)
	switch {
	case c != nil && c.Reason == inventory.ReasonDenied:
		return "is denied by the configuration of the operator"
	case c != nil && (c.Reason == remote.ReasonScriptFailed || c.Reason == remote.ReasonFilesFailed):
		return "is defective"
	}
	return "does not respond"
}

// since returns the time since when a host has its state, which is constant while it has it.
func since(h *infrav1.SSHHost) string {
	if h.Status.StateSince == nil {
		return ""
	}
	return " since " + h.Status.StateSince.UTC().Format(time.RFC3339)
}

func waitForRelease(s snapshot, p *reconciler.Plan) {
	p.WaitFor(reasonReleasing, "Waiting for SSHHost %s to be clean", s.Host.Name).For("SSHHost", nameOf(s.Host)).ToChange("status.claim")
}
