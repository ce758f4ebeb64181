// Package relay feeds informers of unstructured objects from informers of the same kinds with Go types.
//
// Does: stands in for the API server where a kind is read in both forms, as our providers' objects are: by their own
// controllers with Go types, by the core through contracts. The API server then lists, watches, decodes and encodes each
// change once, and the program parses it once.
//
// Owns: a handler on each informer that it feeds from.
//
// Never: feeds objects that are copied into others, as templates are: fields that the Go types do not know are not in what
// it hands on.
//
// Read first: [Relay.Informers], then stream.go.
package relay
