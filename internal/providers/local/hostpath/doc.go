// Package hostpath says where a path of this host leads, and which places no node may see.
//
// Does: follows symbolic links ([Guard.Resolve]), and refuses what is never a folder to share: the kernel's file
// systems, devices and sockets, and the folders that are reserved by the caller, with all that is above or below them.
//
// Never: says who may mount what; that is the operator's policy, which is asked with the path that was resolved.
//
// Read first: [Guard.Resolve].
package hostpath
