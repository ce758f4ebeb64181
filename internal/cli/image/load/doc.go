// Package load is the verb "image load".
//
// Does: copies container images from Docker, or from archives, into nodes, so that Pods are started from them without a
// registry: into the node of the management cluster ("slipway up --node"), or into those of a workload cluster.
//
// Never: pulls an image.
//
// Read first: Command.
package load
