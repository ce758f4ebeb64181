// Package kube is the only way the controllers write to the management cluster, and the way they read
// provider objects by reference.
//
// Does: server-side apply of the fields of an object that a controller sets ([Writer.Apply], [Writer.ApplyStatus]),
// small changes to objects that belong to others too ([Writer.Patch]), creates and deletes that may be
// repeated after a crash. Nothing is sent where nothing would change: what the controller wants and owns is
// compared with the object first. References to provider objects are resolved by contract, and watched once
// per kind ([References]).
//
// Owns: the field manager "slipway-<controller>" of every write; the record of the newest resourceVersion
// that this process has written of each object ([Writes]), by which the driver recognizes a stale cache.
//
// Never: decides what to write.
//
// Read first: [Writer], then compare.go.
package kube
