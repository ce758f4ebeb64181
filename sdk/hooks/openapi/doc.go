// Package openapi describes the hooks of a catalog as an OpenAPI 3.0 document ([Document]). The document encodes to
// JSON or YAML deterministically. The schemas are derived from the Go types by reflection; the caller may provide
// descriptions of fields ([Describe]).
//
//	catalog ─▶ Document ─▶ paths: one operation for every version of every hook, at ID.Path
//	                   └─▶ components.schemas: requests, responses and their types, by reflection on the Go types
package openapi
