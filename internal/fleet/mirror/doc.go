// Package mirror holds a copy in memory of the Cluster API objects of one management cluster, for `slipway get
// clusters`, `slipway get machines`, `slipway get nodes` and package ui. A [Mirror] discovers the kinds of Cluster API
// and of its providers, lists them once ([Mirror.Load]) or watches them ([Mirror.Run]), and stores the objects without
// managed fields in a [Store]. The Store is a graph for package rootcause and a reader for package describe. Kinds that
// the user may not read are reported, and the others remain available.
//
//	transport.go  rejects every request that is not a read, and every request for Secrets and ConfigMaps
//	kinds.go      which kinds are copied
//	trim.go       what is removed from an object, and strings that are stored once
//	store.go      the objects; reader.go: the Store as a client.Reader
//	changes.go    changes of objects, and the clusters that they belong to
//	mirror.go     lists and watches
package mirror
