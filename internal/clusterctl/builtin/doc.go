// Package builtin records in the inventory which providers a management cluster of `slipway up` has built in, so that other
// programs that read the inventory, clusterctl first of all, do not install a second core beside them.
//
// Does: records those that clusterctl knows by name: cluster-api, and kubeadm for bootstrap and control plane. Their version is that
// of the Cluster API that they serve: it is in the repository where clusterctl looks these names up. Those that do not run are
// removed from the record. The records are marked, and the verbs of this program leave them out.
//
//	runs, not recorded                  record it
//	runs, recorded by this package      record it where the version has changed
//	runs, recorded by another program   nothing: it was installed there before
//	does not run, recorded here         remove the record
//
// Owns: records with the mark of [inventory.BuiltIn].
//
// Never: records what has no repository of that name by default: clusterctl would fail to plan upgrades of all others.
//
// Read first: [Steps].
package builtin
