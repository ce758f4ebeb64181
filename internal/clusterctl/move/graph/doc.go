// Package graph determines for package move which objects of a management cluster a move includes. It builds a graph of
// objects from their owner references and from references that Cluster API makes without an owner ([Build]), selects
// the objects to move, to copy and to reject ([Graph.Select]), and orders the selection with owners first. It also
// reports the problems that prevent the move of an object ([CheckItem]), describes the linked objects that are left
// behind ([LeftBehind]), and converts objects for the target: [Strip] removes cluster-specific content, and [Contains]
// compares two objects. The package has no side effects and accesses no cluster.
//
// The roots of an object follow from these links:
//
//	any object                  its owners (same namespace or cluster-scoped, same UID)
//	Secret without owner        the Cluster, if it is named <cluster>-<purpose>,
//	                            or <cluster>-* and has the type cluster.x-k8s.io/secret
//	ClusterResourceSetBinding   its Cluster
//	EtcdSnapshotPolicy          the Clusters that it selects
//	SSHHost                     the SSHMachine that has claimed it, whatever its namespace
//	referenced object           the object that refers to it in its spec: infrastructureRef, configRef,
//	                            templateRef, poolRef, resources, Secrets …
//
// Roots are Clusters, ClusterClasses, ClusterResourceSets, and objects with the labels move and move-hierarchy. The
// treatment of an object depends on its roots:
//
//	no root, not labelled                                  left at the source
//	SSHHost in use, and Secrets that it owns               moved with its SSHMachine, also from another namespace
//	SSHHost that is free                                   left at the source, unless it is labelled
//	cluster-scoped, or in another namespace                copied: created if missing, never updated or deleted
//	only cluster-scoped roots (or data with one)           copied
//	Secret or ConfigMap without owner, only referenced     copied, because another program may use it
//	a whole namespace is moved                             moved
//	some Clusters: all its Clusters move                   moved
//	some Clusters: root is a class, resource set or label  copied
//	some Clusters: also belongs to another Cluster         copied if it is a template, a policy or plain data,
//	                                                       else rejected
//
// [Graph.UnselectedLinks] returns the references and owners of the selection that are not selected.
package graph
