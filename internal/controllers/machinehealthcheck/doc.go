// Package machinehealthcheck is the MachineHealthCheck controller.
//
// Does: checks the Machines that a MachineHealthCheck selects and their Nodes, sets on each Machine a condition that
// says whether it is healthy, and requests the remediation of unhealthy ones while they are not too many.
//
//	Machine ── annotation, conditions ──┐
//	                                    ├─► examine ─► HealthCheckSucceeded ─► how many? ─┬─► OwnerRemediated=False
//	Node ── there? in time? conditions ─┘                                                 ├─► a remediation request
//	                                                                                      └─► too many: nothing more
//
// What several health checks say of one Machine is one verdict: a Machine is healthy when all of them find it so.
// While the workload cluster is not connected, or the cluster's infrastructure was ready and is not now, nothing
// is judged at all.
//
// Owns: of MachineHealthChecks: owner, cluster label and status. Of Machines: the conditions HealthCheckSucceeded,
// OwnerRemediated while it says WaitingForRemediation, and ExternallyRemediated with the reasons it sets; each until
// another client changes it. Requests for external remediation.
//
// Never: deletes a Machine. That is its owner's part: a MachineSet, a control plane, a pool's infrastructure. The
// deprecated v1beta1 conditions of Machines are the Machine controller's.
//
// Read first: [Snapshot], checks.go, then [Decide].
package machinehealthcheck
