// Package subnet divides the address range of a local cluster.
//
// Does: says which part of a cluster's subnet belongs to nodes, to Services and to Pods ([Divide]), and picks
// a subnet that nothing else uses ([Free]). All three ranges lie inside the one subnet, because that is what
// keeps the traffic of a cluster on this host: Docker drops packets of an internal network that are addressed
// to anything outside its subnet.
//
//	/18, 16384 addresses      0          4096        8192                16384
//	                          | nodes    | Services  | Pods              |
//	                          | /20      | /20       | /19: 32 × /24     |
//
// Owns: the layout. Whoever writes or reads ranges of a local cluster asks here.
//
// Never: looks at the host or at the API; what is in use is an argument.
//
// Read first: [Layout].
package subnet
