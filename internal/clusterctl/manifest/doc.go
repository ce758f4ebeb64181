// Package manifest writes the manifest of a local cluster.
//
// Does: turns a few choices (name, version, workers, network) into the objects that a user would write by
// hand, and prints them as YAML ([Cluster.Objects], [YAML]); says which networks are taken ([Taken]).
//
//	Cluster ── LocalCluster          one network
//	        └─ HostedControlPlane    one process
//	MachinePool ── KubeadmConfig     how a node joins
//	            └─ LocalMachinePool  containers
//	ClusterResourceSet ── ConfigMap  the network of Pods; one for all clusters of the namespace ([Shared])
//
// Owns: the defaults of `slipway create cluster`.
//
// Never: reads or writes the API; there is nothing in the manifest that a user could not apply with kubectl.
//
// Read first: [Cluster].
package manifest
