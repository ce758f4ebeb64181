// Package hooks is the catalog of the Runtime SDK: the hooks with their versions, documentation, request and response
// types, and deprecations.
//
//	Catalog ── Hook (one version of one hook) ── ID{Group, Version, Name}
//	   │          ├─ NewRequest, NewResponse      Go types, those of sigs.k8s.io/cluster-api/api
//	   │          ├─ Tag, Summary, Description    for the documentation and the OpenAPI document
//	   │          └─ Deprecation                  since when, replaced by which version, removed when
//	   └── Conversion (two adjacent versions) ── RequestDown, ResponseUp
//
// [ClusterAPI] returns the hooks of Cluster API; [New] creates a catalog of any list of hooks, and validates it by the
// deprecation policy. A catalog can contain several versions of a hook: callers use the newest, and [Catalog.Down] and
// [Catalog.Up] convert for handlers that are registered for an older one. The package also defines the path at which a
// hook is served ([ID.Path]). It neither calls nor serves hooks. A catalog is immutable and safe for concurrent use.
package hooks
