// Package machinetemplate is the controller of LocalMachineTemplates.
//
// Does: reports what a node made from a template offers, so that the cluster autoscaler can scale a group up from
// zero: a container node sees the processors, memory and architecture of the host.
//
// Owns: status of LocalMachineTemplates.
//
// Never: looks at the spec.
//
// Read first: [Controller.Reconcile].
package machinetemplate
