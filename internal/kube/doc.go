// Package kube implements the writes of controllers to the management cluster, and their reads of provider objects by
// reference. [Writer] applies the fields that a controller sets with server-side apply ([Writer.Apply],
// [Writer.ApplyStatus]), patches single fields of objects that have other writers ([Writer.Patch]), and creates and
// deletes objects in a way that can be repeated after a crash. An apply that would change nothing is not sent: Writer
// first compares the object with the fields that the controller wants and owns (compare.go). Every write has the field
// manager "slipway-<controller>". [Writes] records the newest resourceVersion that this process has written for each
// object, so that a stale cache can be detected. [References] resolves references to provider objects by contract, and
// starts a watch once for each kind.
package kube
