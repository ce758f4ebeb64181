// Package machines creates, changes and deletes the Machines of an owner. It contains the logic that MachineSets and
// control planes share, and MachinePools in part: how a Machine is created ([Definition]), which fields follow the
// template in place ([InPlace]), which Machines are deleted first ([DeletionPriority]), which unhealthy Machines are
// replaced ([Remediation]), whether a Machine may be created now ([PreflightChecks], [WorkerChecks]), and how the
// Machines appear in the owner's status ([List]). [OwnerState] computes the actions that bring Machines and clones
// in line with their definition, [MachineWriter] runs these actions, and [Pending] remembers changes that the cache
// does not show yet. The package owns the Machine fields that the owner's field manager applies, and the conditions
// UpToDate and OwnerRemediated if the owner sets them. It does not decide how many Machines an owner has, or when, and
// does not write the owner's status. To change it, start with [Definition] and [OwnerState], then read [MachineWriter].
//
// The data flow of an owner's reconciliation:
//
//	Definition ┐
//	Members    ├─ OwnerState ─► Propagation ─► actions ─► MachineWriter ─► Machines and their clones
//	Clones     ┘                Create, Delete ──┘
//
// When the template changes, existing Machines follow it only in these fields. An extension that updates a Machine in
// place can also change the other fields, except for the names ([BeginUpdate]). While a Machine is being deleted, only
// its deletion timeouts are updated:
//
//	updated in place                       unchanged
//	labels, annotations                    name, version, failureDomain
//	readinessGates, taints                 bootstrap, infrastructureRef
//	minReadySeconds, deletion timeouts     provider ID
//
// Labels, annotations and taints that a Node receives from its Machine are computed here, too ([NodeMetadata]), because
// a MachinePool without Machines labels its Nodes itself ([SyncNodeLabels]).
//
// Owners of other kinds can define their own order of deletion ([OwnedMachines.DeleteCandidates]), their own reasons to
// defer a remediation, additional objects besides the clones ([MachineWriter.CreateAll]), and their own preflight
// checks.
package machines
