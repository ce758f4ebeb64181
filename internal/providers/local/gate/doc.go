// Package gate keeps the driver away from objects that are not ours to touch at all.
//
// Does: stands before the driver of a controller and lets an object through only if a predicate says so; one that is
// held back gets no finalizer, no condition and no event.
//
// Never: writes.
//
// Read first: [Gate].
package gate
