// Package shared reads what is costly to read once for all callers that come at the same time.
//
// Does: lets callers that come while something of a namespace is read share the next reading ([Reading]).
//
// Never: keeps what was read. A reading is as new as the call that gets it.
//
// Read first: [Reading.Of].
package shared
