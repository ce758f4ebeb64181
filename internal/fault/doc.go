// Package fault is the vocabulary of errors.
//
// Does: gives every error that crosses a package boundary one of six kinds, because what the caller
// does next (try again now, try again later, wait, stop, tell a developer) depends on the kind alone.
// Errors of the Kubernetes API are classified by [KindOf] without being wrapped first.
//
// Owns: the kinds and the user-facing message of a fault.
//
// Never: logs, retries, or looks at the text of an error.
//
// Read first: [Kind], then [KindOf].
package fault
