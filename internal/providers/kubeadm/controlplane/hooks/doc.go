// Package hooks decides when a control plane Machine that is being deleted may go: its pre-terminate hook stays until its member of etcd
// is removed, or no member can be on it.
//
// Does: evaluates the hook of a Machine ([Has], [IsReached], [IsLast], [Others]); moves the leader away from a Machine that is deleted,
// removes its member, then the hook ([Input.Leave]); removes members that were left behind ([Input.RemoveOrphans]).
//
//	the member of the Machine is known                        remove it when the quorum stays, then the hook
//	it is not known which member runs on the Machine          keep the hook
//	no member can be on the Machine, none is managed, or no
//	other Machine is left                                     remove the hook
//
// Never: reads a member, or attributes one to a Machine (package quorum does).
//
// Read first: [Input], then [Input.Leave].
package hooks
