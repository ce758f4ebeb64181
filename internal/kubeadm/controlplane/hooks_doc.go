// Package hooks manages the pre-terminate hook of control plane Machines that are being deleted. The hook blocks the
// deletion of the infrastructure until the Machine's etcd member is removed, or the Machine cannot have one. The
// package evaluates the hook ([HasHook], [IsReached], [IsLast], [OtherHooks]). It transfers leadership away from a deleted
// Machine, removes its member and then the hook ([Input.Leave]), and removes members that were left behind
// ([Input.RemoveOrphans]). Package quorum maps members to Machines.
//
//	the member of the Machine is known                      remove it if the quorum permits, then the hook
//	it is unknown which member runs on the Machine          wait
//	the Machine cannot have a member, etcd is not managed,
//	or no other Machine is left                             remove the hook
package controlplane
