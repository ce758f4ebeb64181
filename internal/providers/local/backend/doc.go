// Package backend is what the Local controllers ask of whatever runs nodes.
//
// Does: defines the verbs ([Networks], [Machines], [Watcher]) and the values they exchange, and the names of things
// on the host. Every verb may be repeated: it brings about a state instead of performing a step.
//
// Owns: the names and labels of containers, networks and provider IDs.
//
// Never: knows Kubernetes objects or conditions, or how a node is run; that is backend/container.
//
// Read first: [Machines], then names.go.
package backend
