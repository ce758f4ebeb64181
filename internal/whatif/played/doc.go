// Package played plays the part of the world that the core's controllers do not run themselves.
//
// Does: providers of any kind do what their contract promises, a moment later ([Providers]): infrastructure and control planes
// become provisioned, machines get a provider ID, bootstrap configs a data Secret, pools as many instances as they are asked
// for, and what is deleted goes. Workload clusters have the Nodes of their Machines and answer at once ([Workloads]). What has no
// owner any more is collected ([Collector]). Runtime Extensions let go of what they may hold back, and answer what they are asked to
// compute only where they are really called ([Extensions]).
//
// Never: predicts how long anything takes, fails, or has objects besides those that the contract names. What is really wrong with
// an object, as its status says, stays wrong until it is replaced.
//
// Read first: [Providers].
package played
