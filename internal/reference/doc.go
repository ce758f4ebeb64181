// Package reference implements the references from Clusters, Machines and MachinePools to provider objects. From the
// referenced object as it was read, a [Link] computes the actions (set the owner, wait, delete: [Link.Decide],
// [Link.Delete]) and the reports (the condition that mirrors the object, its failure, an event:
// [Link.ComputeCondition], [Failure], [Events]).
// Contract versions and unreadable fields are handled here and in sdk/contract, so that all controllers that reference
// provider objects use the same messages. A controller describes each of its references once as a [Role], stores the
// view that kube.References returned in its snapshot, and creates a [Link] from both. Each controller decides itself
// which values it copies from the object, and when ([Link.IsDone]). The package owns the owner reference and the
// cluster label of provider objects. It reads no objects and contains no logic for a particular kind. To change it,
// start with [Link], then read decide.go.
//
// The decision table; the first matching row applies:
//
//	presence                decision                               condition of the owner
//	not set                 nothing                                computed by the owner
//	cannot be read          wait for a user                        Unknown, with the change that is needed
//	missing, not used yet   wait for its creation                  False, ObjectDoesNotExist
//	missing, was in use     wait for a user; nothing if the        False, ObjectDeleted
//	                        object is not needed any more
//	has another controller  wait for a user                        Unknown, with the other owner
//	not owned               set owner and cluster label
//	field not readable      wait for a user                        Unknown, with the field
//	not done                wait for its provider                  the object's condition; otherwise False, with field
//	done                    nothing                                the object's condition; otherwise True
package reference
