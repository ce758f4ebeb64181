// Package machinehealthcheck is the MachineHealthCheck controller. It checks the Machines that a MachineHealthCheck
// selects and their Nodes, sets a health condition on each Machine, and requests the remediation of unhealthy Machines
// unless too many are unhealthy. The results of several health checks for one Machine are combined: a Machine is
// healthy if all of them succeed. No Machine is checked while the workload cluster is not connected, or while the
// cluster's infrastructure is not ready after it was ready before. The controller never deletes a Machine; the
// Machine's owner does: a MachineSet, a control plane, or the infrastructure of a MachinePool. It owns the owner
// reference, the cluster label and the status of MachineHealthChecks, and the requests for external remediation. Of
// Machines it owns the conditions HealthCheckSucceeded, OwnerRemediated with reason WaitingForRemediation, and
// ExternallyRemediated with the reasons that it sets, each until another client changes the condition. The Machine
// controller sets the deprecated v1beta1 conditions of Machines. To change the controller, start with [snapshot] and
// checks.go, then read [decide]. Package manager starts the controller with [Add].
//
// The path from the input to the remediation:
//
//	Machine ── annotation, conditions ──┐
//	                                    ├─► examine ─► HealthCheckSucceeded ─► how many? ─┬─► OwnerRemediated=False
//	Node ── exists? in time? conditions ┘                                                 ├─► a remediation request
//	                                                                                      └─► too many: nothing more
package machinehealthcheck
