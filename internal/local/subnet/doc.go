// Package subnet divides the address space of local clusters. [NewLayout] computes the part of a cluster's network that
// is reserved for nodes, [Choose] finds a range for a network that overlaps nothing on the host, and [ParseRoutes]
// parses the kernel's routing table. All functions are pure computations on values supplied by the caller, for IPv4
// only. The container backend (local/container, local/backend) creates networks by the layout, and the LocalCluster
// controller compares the ranges of the Cluster with it. `slipway create cluster` chooses a free range. The layout must
// not change, because the networks of existing clusters are divided by it.
//
// The layout of a network, for example 172.31.0.0/16:
//
//	172.31.0.1          gateway: the host; hosted control planes listen here
//	172.31.0.2 – .239   nodes; Slipway assigns the addresses, so that a node retains its address across restarts
//	172.31.0.240/28     other containers; the container engine assigns the addresses
//	the rest            Pods and Services, according to spec.clusterNetwork of the Cluster
package subnet
