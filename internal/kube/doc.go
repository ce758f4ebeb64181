// Package kube is the access of controllers to the management cluster: their writes, and their reads of provider
// objects by reference. [Writer] applies the fields that a controller sets with server-side apply ([Writer.Apply],
// [Writer.ApplyStatus]), patches single fields of objects that have other writers ([Writer.Patch]), and creates and
// deletes objects in a way that can be repeated after a crash. Every write has the field manager
// "slipway-<controller>". An apply that would change nothing is not sent: Writer first compares the object with the
// fields that the controller wants and owns (compare.go). [Writes] records the newest resourceVersion that this process
// has written for each object, so that a stale cache can be detected. [StatusLimits] removes values that the API would
// reject from a status before it is written, because one rejected value, such as a message from a provider, would
// prevent all others from being written. [References] resolves references to provider objects by contract, and starts a
// watch once for each kind. [SharedRead] shares reads past the cache between concurrent callers.
package kube
