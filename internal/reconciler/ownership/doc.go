// Package ownership decides when the owner of Machines may act on its observed state. It prevents MachineSets and
// MachineDeployments from creating or deleting anything before all owner references are in place. Objects restored from
// a backup have no owner references, finalizers or status, and are restored in any order, so a MachineSet without its
// Machines looks like a new one. [Decide] distinguishes the two cases by the labels, which a backup preserves, and by
// the Nodes of the workload cluster, whose annotations name their Machines. Complete ownership is recorded in
// status.observedGeneration, which a controller leaves unset until the decision is to continue; a backup does not
// preserve it. The package also sets the Cluster and the owners of an object ([AddToCluster], [AddOwner]). It does not
// read or write objects in the API. To change it, start with [Input], then read [Decide]. The controllers of
// MachineSets and MachineDeployments call [Decide]; other controllers use the rest.
//
// The decision table; the first matching row applies:
//
//	input                                                decision
//	Cluster, or the owner that a label names, is absent  wait for it
//	a child that it controls lacks its watch label       wait for the label
//	a child matches and has no controller                adopt it, do nothing else in this reconciliation
//	a child's label names this owner, but it cannot be   wait until a user changes it
//	adopted
//	a grandchild names a child that does not exist       wait for that child
//	complete ownership was recorded before               continue
//	not recorded, workload cluster not read              wait for its connection, unless this process created the owner
//	                                                     (CreatedOwners)
//	not recorded, Nodes of Machines that do not exist    wait for those Machines
//	otherwise                                            continue, and record it
package ownership
