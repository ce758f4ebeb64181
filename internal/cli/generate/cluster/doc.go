// Package cluster is the verb "generate cluster".
//
// Does: prints the manifest of a cluster made from a template: of an infrastructure provider, an address, a file or a
// ConfigMap. Where the management cluster is one of "slipway up" and no provider was named, the templates are those of this build.
//
// Never: writes to the management cluster.
//
// Read first: Command.
package cluster
