// Package portforward connects to ports of Pods through the API server of their cluster ([Dial]), as kubectl
// port-forward does. It uses the sockets of an existing connection ([Transport]), so that the same restrictions on
// addresses, proxies and credentials apply as for all other calls to the cluster. It does not retry. Only package
// workload calls it, for the connections to the etcd members and API servers of control planes. Other packages name
// their [Target].
package portforward
