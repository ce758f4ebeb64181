// Package hooks is the pre-terminate hook that a control plane puts on its Machines, which keeps a Machine that is deleted until its
// member of etcd is removed.
//
// Does: says whether a Machine has the hook, whether the Machine controller waits for it, and which hooks come before it.
//
// Never: adds or removes one.
//
// Read first: [IsReached].
package hooks
