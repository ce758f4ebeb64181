// Package portforward connects to ports of Pods through the API server of their cluster.
//
// Does: opens a connection to a port of a Pod ([Dial]) as kubectl port-forward does, over the sockets of a connection that exists
// ([Transport]), so that what holds for all calls to the cluster (addresses, proxies, credentials) holds for this one.
//
// Never: chooses the cluster or the Pod, or repeats an attempt.
//
// Read first: [Dial].
package portforward
