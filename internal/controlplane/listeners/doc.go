// Package listeners opens and merges the listeners of API servers and load balancers. [Merge] merges two listeners into
// one. [Freebind] listens at an address that this host may not have yet, because the bridge of a cluster's network can
// appear after the process starts, and can disappear and reappear while it runs. [AddressHolder] describes the process
// that uses a port. Packages controlplane, childproc and local/loadbalancer use the package.
//
// merge.go is compiled into programs of several Kubernetes versions (internal/controlplane/program).
package listeners
