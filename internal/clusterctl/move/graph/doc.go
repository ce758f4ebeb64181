// Package graph says which objects of a management cluster belong together, and which of them move.
//
// Does: makes a graph of objects by their owner references and by what Cluster API links without one; selects what moves,
// what is copied and what is refused; puts the selection into an order in which owners come first.
//
// What an object belongs to (its roots) follows from these links:
//
//	an object            its owners (same namespace or cluster-scoped, same UID)
//	Secret without owner       the Cluster, if it is named <cluster>-<purpose>, or <cluster>-* and has the type cluster.x-k8s.io/secret
//	ClusterResourceSetBinding  its Cluster
//	EtcdSnapshotPolicy         the Clusters that it is for
//	what an object refers to in its spec (infrastructureRef, configRef, templateRef, poolRef, resources, Secrets …)  that object
//
// Roots are Clusters, ClusterClasses, ClusterResourceSets, and objects with the labels move and move-hierarchy. What happens to
// an object:
//
//	of no root, not marked                               stays
//	cluster-scoped, or in another namespace              copied: created where it is missing, never changed, never deleted
//	of cluster-scoped roots only (or data of one)        copied
//	Secret or ConfigMap without owner, only referred to  copied: another program may use it
//	whole namespace is moved                             moves
//	some Clusters: all its Clusters move                 moves
//	some Clusters: of a class, a resource set, a mark    copied
//	some Clusters: another Cluster has it, too           copied if it is a template, a policy or plain data, else refused
//
// What the selection refers to or is owned by, and what is not selected, is in [Graph.Loose].
//
// Never: reads or writes anything.
//
// Read first: [Build], [Graph.Select].
package graph
