// Package machines creates, changes and deletes the Machines of an owner: what a MachineSet and a control plane have in common,
// and a MachinePool in part.
//
// Does: says what an owner's Machine is created as ([Definition]) and which of its fields follow the template in place
// ([InPlace]), which Machines are deleted first ([DeletionPriority]) and which unhealthy ones are replaced ([Remediation]), and what
// has to be done so that Machines and clones follow their definition ([State]). Carries out these actions ([Keeper]), and
// remembers what the cache does not show yet ([Pending]).
//
//	Definition ┐
//	Members    ├─ State ─► Propagation ─► actions ─► Keeper ─► Machines, bootstrap configs, infrastructure machines
//	Clones     ┘           Create, Delete ──┘
//
//	follows in place                       stays
//	labels, annotations                    name, version, failureDomain
//	readinessGates, taints                 bootstrap, infrastructureRef
//	minReadySeconds, deletion timeouts     provider ID
//
// A Machine that an extension updates in place takes over what stays otherwise, but for its names ([BeginUpdate]).
//
// An owner of another kind brings its own order of deletion ([Members.DeleteCandidates]), its own reasons to defer a
// remediation, objects of its own beside the clones ([Keeper.CreateAll]) and its own checks (package machines/preflight).
//
// Owns: the fields of Machines that their owner's field manager applies, and the conditions UpToDate and OwnerRemediated where
// their owner sets them.
//
// Never: decides how many Machines an owner has, or when. Of a Machine that is being deleted only the timeouts of its deletion
// follow.
//
// Read first: [Definition], [State], then [Keeper].
package machines
