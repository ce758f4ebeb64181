// Package membership determines which objects belong together: an object and its Cluster, a Cluster and this
// manager, and an object of the core and the provider objects that it references. It determines the Cluster of an
// object from its spec, label or owner ([ClusterOf]). It maintains the indexes with which members of a Cluster and
// objects that reference a provider object are found without listing a namespace, and enqueues these objects when
// the Cluster or the provider object changes. It also reports whether the Cluster pauses its members, and whether
// an object is in the manager's [Scope].
//
// # Scope
//
// A manager with a watch filter reconciles an object only if the object and its Cluster both have the label
// cluster.x-k8s.io/watch-filter with the filter's value ([Scope.Includes], checked at the beginning of every
// reconciliation). The manager's cache contains no other objects of the core's kinds, so other objects never appear
// in a snapshot and are never counted, adopted or connected to. Provider objects, templates, Secrets and ConfigMaps
// are in the scope of the objects that reference them, unless their own label has another value. Objects that the
// manager creates inherit the label (ownership.PassWatchLabel). An object outside the scope looks as if it did not
// exist. Before a MachineSet or MachineDeployment creates or deletes objects, and before a Cluster deletes its
// control plane, the controller therefore lists members that only lack the label ([Scope.Hidden]) and waits until
// they have it.
//
// The package owns the indexes "<controller>.cluster" and "<controller>.reference" of the manager's cache. It
// writes no objects and makes no decisions for controllers. Start with [ClusterOf], then read [Scope].
package reconciler
