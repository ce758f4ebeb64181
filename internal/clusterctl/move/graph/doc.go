// Package graph says which objects of a management cluster belong together, and which of them move.
//
// Does: makes a graph of objects by their owner references and by what Cluster API links without one; selects what moves,
// what is copied and what is refused; puts the selection into an order in which owners come first.
//
// What an object belongs to (its roots) follows from these links:
//
//	an object            its owners (same namespace or cluster-scoped, same UID)
//	Secret <cluster>-*   the Cluster of the longest such name, where it has no owner
//	ClusterResourceSetBinding  its Cluster
//	EtcdSnapshotPolicy         the Clusters that it is for; the Secret of its store belongs to it
//	what a core object refers to in its spec (infrastructureRef, configRef, templateRef, resources …)  that object
//
// Roots are Clusters, ClusterClasses, ClusterResourceSets, and what the labels move and move-hierarchy mark. What happens to
// an object:
//
//	of no root, not marked                               stays
//	cluster-scoped, or in another namespace              copied: created where it is missing, never changed, never deleted
//	whole namespace is moved                             moves
//	some Clusters: all its Clusters move                 moves
//	some Clusters: of a class, a resource set, a mark    copied
//	some Clusters: another Cluster has it, too           copied if it is a template, a policy or plain data, else refused
//
// Never: reads or writes anything.
//
// Read first: [Build], [Graph.Select].
package graph
