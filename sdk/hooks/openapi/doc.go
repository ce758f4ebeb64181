// Package openapi describes the hooks of a catalog as an OpenAPI 3.0 document.
//
//	catalog ─▶ Document ─▶ paths: one operation for every version of every hook, at ID.Path
//	                   └─▶ components.schemas: requests, responses and all they hold, by reflection over the Go types
//
// Does: [Document] makes the document; it marshals to JSON or YAML, always to the same bytes for the same catalog.
//
// Owns: the names of the schemas, and what JSON the Go types with a form of their own are.
//
// Never: reads source code: descriptions of fields come from the caller, who may have them ([Describe]).
//
// Read first: [Document].
package openapi
