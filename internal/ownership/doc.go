// Package ownership says when an owner of Machines may count on what it sees.
//
// Does: keeps MachineSets and MachineDeployments from making or removing anything before the graph of owners is whole.
// Objects that come back from a backup have no owner references, finalizers or status, and come in any order: a
// MachineSet without its Machines looks like one that has just been created. [Judge] tells them apart by what a backup
// keeps, the labels, and by the Nodes of the workload cluster, which remember their Machines.
//
//	facts                                                verdict
//	Cluster, or the owner that a label names, absent     wait for it
//	a child that it controls lacks its watch label       wait for the label
//	a child matches and no one controls it               adopt it, do nothing else in this reconcile
//	a child names us as owner and cannot be adopted      wait until a person changes it
//	a grandchild names a child that does not exist       wait for that child
//	a pass with a whole graph is on record               go on
//	no such record, workload cluster not seen            wait for its connection, unless this process created the owner ([Begun])
//	no such record, Nodes of Machines that do not exist  wait for those Machines
//	otherwise                                            go on, and put it on record
//
// The record is status.observedGeneration: a controller leaves it unset until the verdict is to continue.
// A backup does not keep it.
//
// Also says how an object belongs to its Cluster, and how it gets an owner ([Join], [Own]).
//
// Never: reads or writes objects in the API.
//
// Read first: [Facts], then [Judge].
package ownership
