// Package watches selects the objects that a controller reconciles. It has the indexes and event handlers with which a
// change of a Cluster enqueues its members ([InCluster], [EnqueueMembers]) and a change of a provider object enqueues
// the objects that reference it ([Referrers]), predicates for both, and the [Scope] of the manager. The Add function of
// almost every controller uses it, and package reconciler checks the scope.
//
// A manager with a watch filter reconciles an object only if the object and its Cluster both have the label
// cluster.x-k8s.io/watch-filter with the filter's value ([Scope.Includes]). The manager's cache contains no other
// objects of the core's kinds:
//
//	object                                        in the scope
//	Cluster                                       if it has the label
//	object of the core's kinds in a Cluster       if it and the Cluster have the label ([ClusterOf])
//	provider object, template, Secret, ConfigMap  with the object that references it, unless its label has another value
//	object that the manager creates               always: it inherits the label (ownership.PassWatchLabel)
//
// An object outside the scope looks as if it did not exist. Before a MachineSet or MachineDeployment creates or deletes
// objects, and before a Cluster deletes its control plane, the controller therefore lists the members that only lack
// the label ([Scope.Hidden]) and waits until they have it.
package watches
