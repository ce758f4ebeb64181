// Package openapi is the OpenAPI document of the hooks that this binary knows, and a page to read it in.
//
// Does: makes the document from the catalog (sdk/hooks/openapi) with the descriptions of fields that
// `make generate` collects from the Go types; renders it as one HTML page without scripts; serves both.
//
// Owns: the paths below /runtime-sdk/ on the server of the webhooks.
//
// Never: needs the descriptions: without `make generate` the document is the same, with fields unexplained.
//
// Read first: [Document], [Handler].
package openapi

//go:generate sh -c "cd ../../.. && go run ./internal/hook/openapi/generate"
