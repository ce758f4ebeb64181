// Package load implements the image load command. It copies container images from Docker or from archives into nodes,
// so that Pods can use them without a registry: into the node of the management cluster ("slipway up --node"), or into
// the nodes of a workload cluster. It never pulls images.
package image
