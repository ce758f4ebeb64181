package hook

import (
	"errors"
	"net/http"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook/wire"
)

// Reasons of the errors of calls and of discovery, besides those of package wire.
const (
	// ReasonNotJSON: the answer cannot be read.
	ReasonNotJSON = "AnswerNotJSON"
	// ReasonWrongKind: the answer names another kind or apiVersion than the hook's.
	ReasonWrongKind = "WrongKind"
	// ReasonInvalidAnswer: the answer says something that no answer may say.
	ReasonInvalidAnswer = "InvalidAnswer"
	// ReasonAnsweredFailure: the extension answered with status Failure.
	ReasonAnsweredFailure = "AnsweredFailure"
	// ReasonCircuitOpen: the extension failed so often that it is left alone for a while.
	ReasonCircuitOpen = "CircuitOpen"
	// ReasonBusy: the extension has as many calls in flight as it may.
	ReasonBusy = "Busy"
	// ReasonNotReady: it is not known yet which handlers there are; it will be in a moment.
	ReasonNotReady = "NotReady"
	// ReasonNotDiscovered: an ExtensionConfig was never discovered, so that any of its handlers may be missed.
	ReasonNotDiscovered = "NotDiscovered"
	// ReasonUnknownHook: the handler serves a hook, or a version of it, that this manager does not know.
	ReasonUnknownHook = "UnknownHook"
	// ReasonNotRegistered: no extension has the handler.
	ReasonNotRegistered = "NotRegistered"
	// ReasonNamespaceMismatch: the handler is not for objects of the namespace.
	ReasonNamespaceMismatch = "NamespaceMismatch"
	// ReasonHookMismatch: the handler serves another hook, or a version that the request cannot be converted to.
	ReasonHookMismatch = "HookMismatch"
	// ReasonInvalidDiscovery: the list of handlers breaks a rule.
	ReasonInvalidDiscovery = "InvalidDiscovery"
)

// callError reports whether an error is one that failure policies are about and that circuits count: the extension was not
// reached, or what came back was no answer. Everything else was said by a server that can be reached.
func callError(f *fault.Fault) bool {
	switch f.Reason {
	case ReasonNotJSON,
		wire.ReasonHostUnknown, wire.ReasonRefused, wire.ReasonNoRoute, wire.ReasonExpired, wire.ReasonWrongHost,
		wire.ReasonUnknownCA, wire.ReasonBadCertificate, wire.ReasonTLS, wire.ReasonClientRefused, wire.ReasonTimeout,
		wire.ReasonLost, wire.ReasonHTTPStatus, wire.ReasonRedirect, wire.ReasonTooLarge, wire.ReasonTransportFailed:
		return true
	}
	return false
}

// ignored reports whether a handler's failure policy turns the error into a success without a message.
func ignored(err error, policy runtimev1.FailurePolicy) bool {
	f := fault.As(err)
	if f == nil || policy != runtimev1.FailurePolicyIgnore {
		return false
	}
	return callError(f) || f.Reason == ReasonCircuitOpen
}

// failureOf returns the fault of an error that counts against the extension, or nil.
func failureOf(err error) *fault.Fault {
	var f *fault.Fault
	if !errors.As(err, &f) || !callError(f) {
		return nil
	}
	return f
}

// notServed reports whether an extension that was reached has nothing where a handler should be.
func notServed(f *fault.Fault) bool {
	return f != nil && f.Reason == wire.ReasonHTTPStatus && wire.Code(f) == http.StatusNotFound
}
