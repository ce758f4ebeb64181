// Package upgrade changes the Kubernetes version of a cluster that has a topology.
//
// Does: says beforehand what the upgrade will do ([Of]): the versions that the control plane and the workers get, step by step, how
// many nodes are replaced in each, and what holds some back; writes the version ([Apply]).
//
// Never: upgrades anything itself, nor decides the order: that is the topology controller's, with package lifecycle, which makes
// this plan, too.
//
// Read first: [Of].
package upgrade
