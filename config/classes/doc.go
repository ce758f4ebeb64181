// Package classes holds the ClusterClasses that ship with Slipway.
//
// Does: gives each class with its templates as objects, as the manifests in this folder have them.
//
//	local      a hosted control plane, and nodes in containers of this host
//	simulated  the same with nothing behind it, for trying out many clusters
//
// Never: writes to a cluster. A class that is in a cluster belongs to the people there: nothing updates it.
//
// Read first: local.yaml.
package classes
