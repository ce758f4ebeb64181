// Package recovery is what a control plane and the infrastructure of its Machines say to each other when etcd has lost its quorum.
//
// Without a quorum the API of the workload cluster does not answer, so that a member can be reached through its infrastructure alone.
//
// Does: reads and writes the request on a KubeadmControlPlane ([Request]), what the control plane asks of an infrastructure machine
// ([Order]) and what that answers ([Report]); all are annotations, and may come from anyone who can write these objects. Has the programs
// that an infrastructure runs on a node, or a person by hand: what a member of etcd has ([Survey]), and a member made the only one
// of its cluster ([Rebuild]), or put back to a snapshot ([Stage], [Restore]).
//
//	KubeadmControlPlane          infrastructure machine            node
//	  Request ──────────────────► Order Survey ──────────────────► metrics of etcd
//	          ◄────────────────── Report: leader, revision, index
//	  survivor chosen, others deleted
//	          ──────────────────► Order Rebuild ─────────────────► --force-new-cluster, once
//	          ◄────────────────── Report: done
//
// Of a request that names a snapshot, Stage comes before the others are deleted, and Restore takes the place of Rebuild.
//
// Never: decides who survives or when; runs anything.
//
// Read first: [Request], [Order], [Report].
package recovery
