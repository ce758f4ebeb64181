// Package link is a reference from an object of the core to an object of a provider, and everything that follows from it.
//
// Does: from what was read at the end of a reference, a [Link] says what to do (own it, wait, delete it: [Link.Decide],
// [Link.Delete]) and what to report (the condition that mirrors the object, its failure, an event: [Link.Verdict], [Failure],
// [Events]). Contract versions and fields that cannot be read are dealt with here and in sdk/contract, so that every controller
// that refers to a provider's object says the same in the same words:
//
//	presence                decision                               condition of the owner
//	not set                 nothing                                the owner's to say
//	cannot be read          wait for a person                      Unknown, with what to change
//	missing, not used yet   wait for its creation                  False, ObjectDoesNotExist
//	missing, was in use     wait for a person; an object that is   False, ObjectDeleted
//	                        not needed any more: nothing
//	of another owner        wait for a person                      Unknown, with who it belongs to
//	not owned               own and label it
//	field not readable      wait for its provider                  Unknown, with the field
//	not done                wait for its provider                  that of the object; else False, with the field
//	done                    nothing                                that of the object; else True
//
// A controller describes each of its references once, as a [Role], puts the view that kube.References returned into its
// snapshot, and makes a [Link] of both. What it takes over from the object, and when, is its own decision ([Link.Done]).
//
// Owns: owner reference and cluster label of provider objects.
//
// Never: reads an object, or knows which kinds there are.
//
// Read first: [Link], then decide.go.
package link
