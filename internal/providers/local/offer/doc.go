// Package offer says what a node of the Local provider offers before there is one.
//
// Does: computes capacity and system of a node from its backend, what its spec asks for, what the operator allows and
// what the host has ([Nodes.Offered]). The cluster autoscaler reads both in the status of a LocalMachineTemplate or a
// LocalMachinePool to scale a group up from zero.
//
// Never: writes an object, or looks at a node that exists.
//
// Read first: [Nodes].
package offer
