// Package backend is what the Local controllers ask of whatever runs nodes.
//
// Does: defines the verbs ([Networks], [Machines], [Scripts], [Watcher]), the values they exchange, the facts by which
// decisions know a backend ([Terms]), and the names of things on the host. Every verb may be repeated: it brings about a
// state instead of performing a step. A backend is a folder below this one, a member of spec.backend, and an entry in
// the provider's [Set].
//
// Owns: the names and labels of machines, networks and provider IDs.
//
// Never: knows conditions, or how a node is run.
//
// Read first: [Machines], terms.go, then names.go.
package backend
