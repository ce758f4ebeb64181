// Package reading reads what is costly to read once for all callers that come at the same time.
//
// Does: lets callers that come while something of a namespace is read share the next reading ([Shared]).
//
// Never: keeps what was read. A reading is as new as the call that gets it.
//
// Read first: [Shared.Of].
package reading
