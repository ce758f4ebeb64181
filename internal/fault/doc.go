// Package fault defines errors with a kind, a reason for conditions and a message for users. Every error that crosses a
// package boundary has one of six kinds ([Kind]), because the caller's next step (retry, read again, wait for an event,
// stop, report a bug) depends only on the kind. [KindOf] also classifies errors of the Kubernetes API, which do not
// have to be wrapped.
package fault
