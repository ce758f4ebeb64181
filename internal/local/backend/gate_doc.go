// Package gate filters the objects that a controller reconciles. A [Gate] wraps a reconciler and skips objects that are
// managed externally or lack their owner. A skipped object gets no finalizer, no condition and no event.
package backend
