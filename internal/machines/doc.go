// Package machines keeps the Machines of an owner what the owner's template says after they were created.
//
// Does: says which fields of a Machine follow the template in place and which stay as the Machine was created with
// ([InPlace]), whether a Machine has them ([Includes], [Follows]), and applies them with one write ([Keeper]). What older
// programs said of these fields is handed over once, so that it can be changed and removed.
//
//	follows in place                       stays
//	labels, annotations                    name, version, failureDomain
//	readinessGates, taints                 bootstrap, infrastructureRef
//	minReadySeconds, deletion timeouts     provider ID
//
// Owns: the share of a Machine that its owner's field manager applies.
//
// Never: creates or deletes Machines, or decides which Machines an owner has. Of a Machine that is being deleted only the
// timeouts of its deletion follow; its owner patches them.
//
// Read first: [InPlace], then [Keeper].
package machines
