// Package endpoint handles the API server of a connection to a workload cluster. It creates the transport of the
// connection, checks whether a Kubernetes API server responds and describes the problem if not ([probeAPIServer]), detects the
// cluster in which this process runs ([SelfAddresses]) and addresses that Slipway chose ([ManagedAddresses]), and lists the kinds that every
// API server has ([servedKinds]).
package workload
