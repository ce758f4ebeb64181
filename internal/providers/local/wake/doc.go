// Package wake wakes the Local controllers when something changes on the host.
//
// Does: carries the events of a backend to the work queues of several controllers ([Hub]).
//
// Never: looks at what changed; each controller says which of its objects an event is about.
//
// Read first: [Hub].
package wake
