// Package etcd plays the etcd of a simulated cluster whose control plane runs on simulated machines.
//
// Does: knows the members, who leads, which alarms are raised and whether there is a quorum, and answers what controllers of
// control planes ask members: their lists, status and alarms, the removal of a member, another leader. Members answer by etcd's
// own protocol with certificates of the cluster's etcd authority, on connections that are handed to them ([Cluster.Serve]).
//
// Owns: one note with the objects of the cluster.
//
// Never: stores what an API server would store in etcd.
//
// Read first: [Cluster], then serve.go.
package etcd
