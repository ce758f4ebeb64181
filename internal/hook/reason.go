package hook

import (
	"errors"
	"net/http"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of errors from calls and discoveries of Runtime Extensions, in addition to the reasons in classify.go. The
// package documentation has a table of the states of an extension with their reasons. Waits of controllers have them.
// Package rootcause maps the values to remedies (remedies_*.go).
const (
	// reasonNotJSON: the response cannot be parsed.
	reasonNotJSON = "AnswerNotJSON"
	// reasonWrongKind: the response has another kind or apiVersion than the hook's.
	reasonWrongKind = "WrongKind"
	// reasonInvalidResponse: the response has a field with an invalid value.
	reasonInvalidResponse = "InvalidAnswer"
	// reasonFailureResponse: the response has status Failure.
	reasonFailureResponse = "AnsweredFailure"
	// ReasonCircuitOpen: the extension or handler failed repeatedly and is not called for a while.
	ReasonCircuitOpen = "CircuitOpen"
	// ReasonBusy: the maximum number of calls to the extension is in flight.
	ReasonBusy = "Busy"
	// ReasonNotReady: the handlers are not known yet, because the manager has just started or the extension was just
	// announced.
	ReasonNotReady = "NotReady"
	// reasonNotDiscovered: an ExtensionConfig was never discovered, so that its handlers might be missing.
	reasonNotDiscovered = "NotDiscovered"
	// reasonUnknownHook: the handler serves a hook, or a version of it, that this version of Slipway does not support.
	reasonUnknownHook = "UnknownHook"
	// reasonNotRegistered: no extension has the handler.
	reasonNotRegistered = "NotRegistered"
	// ReasonNamespaceMismatch: the handler is not for objects of the namespace.
	ReasonNamespaceMismatch = "NamespaceMismatch"
	// reasonHookMismatch: the handler serves another hook, or a version that the request cannot be converted to.
	reasonHookMismatch = "HookMismatch"
	// reasonInvalidDiscovery: the list of handlers is invalid.
	reasonInvalidDiscovery = "InvalidDiscovery"
)

// isCallError reports whether failure policies and circuit breakers apply to an error: the extension was not reached,
// or did not return a response. All other errors mean that the extension responded, or that it was not called. A new
// reason for a failed call has to be added here.
func isCallError(f *fault.Fault) bool {
	switch f.Reason {
	case reasonNotJSON, reasonTimeout, reasonLost, reasonHTTPStatus, reasonRedirect, reasonTooLarge, reasonTransportFailed:
		return true
	}
	return unconnected(f.Reason)
}

// isIgnored reports whether a handler's failure policy turns the error into a success without a message.
// [Extensions.Call] and CallAll check it for every failed call that is not Strict ([Invocation]).
func isIgnored(err error, policy runtimev1.FailurePolicy) bool {
	f := fault.As(err)
	if f == nil || policy != runtimev1.FailurePolicyIgnore {
		return false
	}
	return isCallError(f) || f.Reason == ReasonCircuitOpen
}

// failureOf returns the fault of an error that counts as a failure of the extension, or nil. The circuit breakers count
// these faults (reportOutcome).
func failureOf(err error) *fault.Fault {
	var f *fault.Fault
	if !errors.As(err, &f) || !isCallError(f) {
		return nil
	}
	return f
}

// notServed reports whether an extension was reached but does not serve the path of a handler. reportOutcome then
// schedules the next discovery earlier.
func notServed(f *fault.Fault) bool {
	return f != nil && f.Reason == reasonHTTPStatus && statusCode(f) == http.StatusNotFound
}
