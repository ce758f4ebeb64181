// Package membership says which objects belong together: an object to its Cluster, a Cluster to this manager, and an
// object of the core to the provider objects that it refers to.
//
// Does: names the Cluster of an object by its spec, label or owner ([ClusterOf]); keeps the indexes by which members of a
// Cluster and referrers to a provider object are found without listing a namespace; enqueues them when the Cluster or the
// provider object changes; tells whether the Cluster pauses its members, and whether an object is in the manager's [Scope].
//
// # Scope
//
// A manager with a watch filter reconciles an object only if it has the label cluster.x-k8s.io/watch-filter of that value,
// and so has its Cluster ([Scope.Includes], at the beginning of every reconciliation, whatever event led to it). Of the
// core's kinds the manager's cache has nothing else, so that nothing else is in a snapshot, counted, adopted or connected to.
// Provider objects, templates, Secrets and ConfigMaps are in the scope of who refers to them, unless their own label has
// another value. What is created for an object gets its label (ownership.PassWatchLabel). Because an object outside of the
// scope looks as if it did not exist, a MachineSet or MachineDeployment that would create or delete lists first whether a
// member only lacks the label, and so does a Cluster that would delete its control plane ([Scope.Hidden]); these wait for
// the label.
//
// Owns: the indexes "<controller>.cluster" and "<controller>.reference" of the manager's cache.
//
// Never: writes, or decides what a controller does about a member.
//
// Read first: [ClusterOf], then [Scope].
package membership
