// Package memory is a Kubernetes API in memory for the kinds of a management cluster, in which nothing happens by itself.
//
// Does: creates, patches, applies and deletes objects as the API server does, with its own libraries: structural defaults,
// pruning, validation with CEL, field managers and merges by the schema of each CRD, status as a subresource, generations,
// resource versions, generated names, finalizers. Reads are those of a cache: typed or not, by label, namespace and index.
// What changed is handed out by [API.Events] when its owner asks, in the order of the writes; see docs/decisions/0012-whatif.md.
//
//	write ─► prune, default ─► admission ─► schema, CEL ─► fields of managers ─► store ─► event (kept until asked for)
//
// Owns: the objects that it was given, as copies.
//
// Never: knows what an object means, collects garbage, or runs anything: who owns the API plays the rest of the world.
//
// Read first: [API], then write.go.
package memory
