// Package crds carries the CustomResourceDefinitions of every kind that Slipway serves, and installs them.
//
// Does: gives the CRDs of Cluster API's groups and of our own as values (All), completed with what the markers on the
// Go types do not say: contract versions, provider, conversion. Install writes them to a cluster by server-side apply,
// only where something changed, and waits until they are served.
//
// Owns: the CustomResourceDefinitions of those groups, and their annotation slipway.dev/content-hash.
//
// Never: schemas. They come from the Go types by `go run ./internal/manager/crds/generate` (make generate), which
// writes generated/crds.json.gz; git ignores that file. Without it the package compiles and All says what to do.
//
// Read first: labels.go, then install.go.
package crds

//go:generate sh -c "cd ../../.. && go run ./internal/manager/crds/generate"
