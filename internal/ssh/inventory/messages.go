package inventory

import (
	"strings"
	"unicode"
	"unicode/utf8"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Neutral returns the error of a call to a host for the users of the machine on it, who must not learn the addresses,
// users, keys and Secrets of the operator. The condition Reachable of the SSHHost has the details. Errors that do not
// concern the connection retain their message, except for the address and the user. The SSHMachine and SSHCluster
// controllers call it.
func Neutral(h *infrav1.SSHHost, err error) error {
	f := fault.As(err)
	switch {
	case err == nil, f == nil && fault.KindOf(err) != fault.Unreachable:
		return err
	case f == nil:
		return neutral(h, fault.Unreachable, remote.ReasonUnreachable).From(err)
	case remote.ConcernsConnection(f):
		return neutral(h, f.Kind, f.Reason).From(err)
	}
	return fault.New(f.Kind, f.Reason, "%s", withoutNames(h, f.Message)).RetryIn(f.RetryAfter).From(err)
}

// withoutNames replaces the address, and the user unless it is root, for example in an error of the login shell.
func withoutNames(h *infrav1.SSHHost, text string) string {
	replace := []string{"host " + h.Spec.Address, "SSHHost " + h.Name, h.Spec.Address, "SSHHost " + h.Name}
	if user := h.Spec.User; user != "root" && user != "" {
		replace = append(replace, user, "(user)")
	}
	return strings.NewReplacer(replace...).Replace(text)
}

// NeutralTarget is Neutral for the errors of [Target] and of the first connection, which all concern the operator. The
// SSHMachine and SSHCluster controllers call it.
func NeutralTarget(h *infrav1.SSHHost, err error) error {
	f := fault.As(err)
	switch {
	case err == nil:
		return nil
	case f == nil:
		return neutral(h, fault.KindOf(err), remote.ReasonUnreachable).From(err)
	}
	return neutral(h, f.Kind, f.Reason).From(err)
}

func neutral(h *infrav1.SSHHost, kind fault.Kind, reason string) *fault.Fault {
	return fault.New(kind, reason, "%s", UnreachableMessage(h))
}

// UnreachableMessage is the message about a host that cannot be reached for the users of the machine on it. A condition
// of SSHMachines shows it, too.
func UnreachableMessage(h *infrav1.SSHHost) string {
	return "SSHHost " + h.Name + " cannot be reached: its condition " + infrav1.ReachableCondition + " has the reason"
}

// Sentence makes the first letter of a message of an error upper-case, as conditions have it. The controllers of the
// provider call it.
func Sentence(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}
