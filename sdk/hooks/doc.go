// Package hooks is the catalog of the Runtime SDK as data: which hooks there are, in which versions, what they are for,
// what their requests and responses are, and until when a version stays.
//
//	Catalog ── Hook (one version of one hook) ── ID{Group, Version, Name}
//	   │          ├─ NewRequest, NewResponse      Go types, those of sigs.k8s.io/cluster-api/api
//	   │          ├─ Tag, Summary, Description    for people and for the OpenAPI document
//	   │          └─ Deprecation                  since when, what instead, when it goes
//	   └── Conversion (two neighbouring versions) ── RequestDown, ResponseUp
//
// Does: [ClusterAPI] returns the hooks of Cluster API; [New] makes a catalog of any list of hooks and refuses one that
// breaks the rules of deprecation. Several versions of one hook may be in a catalog at the same time: a caller uses the newest,
// and [Catalog.Down] and [Catalog.Up] translate for handlers that are registered for an older one.
//
// Owns: the words of the documentation of every hook, and the path below which a hook is served ([ID.Path]).
//
// Never: calls, serves or stores anything; a catalog never changes once it is made, and is safe to share.
//
// Read first: [Hook], [Catalog], then clusterapi.go.
package hooks
