// Package subnet divides the address space of local clusters.
//
// Does: says which part of a cluster's network belongs to nodes ([Plan]), and finds a range for a network that
// collides with nothing on the host ([Choose]). All of it is arithmetic over values; IPv4 only.
//
// The layout of a network, for example 172.31.0.0/16:
//
//	172.31.0.1          gateway: the host; hosted control planes listen here
//	172.31.0.2 – .239   nodes, addresses given by Slipway so that a node keeps its own over restarts
//	172.31.0.240/28     addresses that the container engine gives to containers of other people
//	the rest            Pods and Services, as spec.clusterNetwork of the Cluster says
//
// Never: talks to the container engine or the kernel; the caller brings the routes and networks.
//
// Read first: [Plan], then [Choose].
package subnet
