// Package manifest generates the manifest of a local cluster from a few options (name, version, workers, subnet), with
// the defaults of `slipway create cluster`, and prints it as YAML ([Cluster.Objects], [YAML]). [UsedSubnets] returns the
// subnets that are already in use. The package does not access the API, and a user can apply the same manifest with
// kubectl.
//
//	Cluster ── LocalCluster          one network
//	        └─ HostedControlPlane    one process
//	MachinePool ── KubeadmConfig     how a node joins
//	            └─ LocalMachinePool  containers
//	ClusterResourceSet ── ConfigMap  the Pod network; one for all clusters of the namespace ([IsShared])
package template
