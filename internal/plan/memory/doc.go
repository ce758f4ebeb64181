// Package memory is the in-memory Kubernetes API of `slipway plan`, for the kinds of a management cluster. It has no
// background activity. It creates, patches, applies and deletes objects like the API server, with the same libraries:
// structural defaults, pruning, validation with CEL, field managers and merges by the schema of each CRD, status as a
// subresource, generations, resource versions, generated names, finalizers. Reads work as in a cache: typed or
// unstructured, by label, namespace and index. [API.Events] returns the changes in the order of the writes. See
// docs/decisions/0012-whatif.md.
//
//	write ─► prune, default ─► admission ─► schema, CEL ─► managed fields ─► store ─► event (queued until read)
//
// The package has no garbage collector and no controllers; the owner of the API simulates other components.
package memory
