// Package machinetemplate is the controller of LocalMachineTemplates.
//
// Does: reports what a node made from a template offers, so that the cluster autoscaler can scale a group up from
// zero.
//
// Owns: status of LocalMachineTemplates.
//
// Never: computes it: package offer does.
//
// Read first: [Controller.Reconcile].
package machinetemplate
