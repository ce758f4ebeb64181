// Package played simulates the components around the core controllers. [Providers] simulates providers of any kind
// according to their contract, after a short delay: infrastructure and control planes become provisioned, machines get
// a provider ID, bootstrap configs a data Secret, pools the requested number of instances, and deleted objects are
// removed. [Workloads] simulates workload clusters that respond immediately and have the Nodes of their Machines.
// [Collector] deletes objects without owners. [Extensions] simulates Runtime Extensions: lifecycle hooks never block,
// and hooks that compute a result are called only if real calls are enabled. Durations are not predicted and nothing
// fails; only the objects that the contract requires are created. A failure in the status of an existing object remains
// until the object is replaced. Start with [Providers].
package world
