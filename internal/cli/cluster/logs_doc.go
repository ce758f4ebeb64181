// Package logs implements the logs command. It prints the log of the management cluster and its manager, the log of a
// hosted control plane, or the journal of a node in a container on this host. It reads files and calls Docker, so it
// works without the API server. For logs of Pods use kubectl.
package cluster
