// Package machines creates, changes and deletes the Machines of an owner. It contains the logic that MachineSets
// and control planes share, and MachinePools in part. It defines how an owner's Machine is created ([Definition]),
// which fields follow the template in place ([InPlace]), which Machines are deleted first ([DeletionPriority]), and
// which unhealthy Machines are replaced ([Remediation]). [State] computes the actions that bring Machines and
// clones in line with their definition, [MachineWriter] runs these actions, and [Pending] remembers changes that the cache
// does not show yet.
//
//	Definition ┐
//	Members    ├─ State ─► Propagation ─► actions ─► Keeper ─► Machines, bootstrap configs, infrastructure machines
//	Clones     ┘           Create, Delete ──┘
//
//	updated in place                       unchanged
//	labels, annotations                    name, version, failureDomain
//	readinessGates, taints                 bootstrap, infrastructureRef
//	minReadySeconds, deletion timeouts     provider ID
//
// An extension that updates a Machine in place can also change the other fields, except for the names
// ([BeginUpdate]).
//
// Owners of other kinds can define their own order of deletion ([Members.DeleteCandidates]), their own reasons to
// defer a remediation, additional objects besides the clones ([Keeper.CreateAll]), and their own checks (package
// machines/preflight).
//
// The package owns the Machine fields that the owner's field manager applies, and the conditions UpToDate and
// OwnerRemediated if the owner sets them. It does not decide how many Machines an owner has, or when. While a
// Machine is being deleted, only its deletion timeouts are updated. Start with [Definition] and [State], then read
// [MachineWriter].
package machines
