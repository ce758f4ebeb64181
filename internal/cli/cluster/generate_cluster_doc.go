// Package cluster implements the generate cluster command. It prints the manifest of a cluster from a template of an
// infrastructure provider, at an address, in a file or in a ConfigMap. For a management cluster of "slipway up", the
// default is the templates of this build. It only reads from the management cluster.
package cluster
