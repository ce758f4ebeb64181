// Package builtin records the built-in providers of a `slipway up` management cluster in the provider inventory, so
// that other programs which read it, such as clusterctl, do not install a second core provider. It records the
// providers that clusterctl knows by name: cluster-api, and kubeadm for bootstrap and control plane. Others are not
// recorded, because clusterctl could not plan upgrades without a default repository for them. Their version is the
// Cluster API version that they implement, which exists in the repository that clusterctl uses. The records have the
// mark of [inventory.BuiltIn], and Slipway's own commands ignore them.
//
//	running, not recorded                  create the record
//	running, recorded by this package      update the record if the version has changed
//	running, recorded by another program   nothing: it was installed there before
//	not running, recorded by this package  delete the record
package install
