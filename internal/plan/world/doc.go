// Package world runs controllers on a copy of a management cluster for `slipway plan`, one reconciliation at a time,
// with a simulated clock. It acts as the manager of the controllers ([World.Setup]): their client and cache are an
// in-memory API, their queues are processed in a fixed order, and timers expire when there is nothing else to do
// ([World.Settle]). The controllers are the production ones, unchanged.
//
//	queues ─► one reconciliation ─► writes ─► events ─► cache handlers ─► queues
//	   ▲                                        └─► simulated components ─► timers
//	   └── the clock advances to the next timer ◄── queues are empty
//
// The package also simulates the components around the controllers. [Providers] simulates providers of any kind
// according to their contract, after a short delay: infrastructure and control planes become provisioned, machines get
// a provider ID, bootstrap configs a data Secret, pools the requested number of instances, and deleted objects are
// removed. Machines that need a host of a finite [Inventory] claim one as their controller would, or wait. [Workloads]
// simulates workload clusters that respond immediately and have the Nodes of their Machines. [Collector] deletes
// objects without owners. [Extensions] simulates Runtime Extensions: lifecycle hooks never block, and hooks that
// compute a result are called only if real calls are enabled; otherwise nothing outside of the process is called.
// Durations are not predicted and nothing fails; only the objects that the contract requires are created. A failure in
// the status of an existing object remains until the object is replaced.
package world
