// Package template builds the manifest of a cluster: from a cluster template ([Release.Template], [New]) for
// `slipway generate cluster`, or from a ClusterClass and a few options ([ClusterManifest]) for
// `slipway create cluster`. A template comes from a release of an infrastructure provider, a URL, a file, the standard
// input, a ConfigMap, or this build ([Builtin]); its variables are replaced, all objects are moved to the namespace of
// the cluster, and the ClusterClass is added if it does not exist in the management cluster. [FindClass] finds the
// ClusterClass of a new Cluster, in its namespace or among the built-in classes; the class parses the values of its
// variables by their schemas ([Class.Values]) and selects its worker class ([Class.Workers]). [ConvertManifest]
// converts a manifest to a newer API version. The package writes to no cluster, and errors never contain the value of a
// variable.
//
// The variables of a cluster template have these values:
//
//	CLUSTER_NAME, NAMESPACE        always from the options
//	KUBERNETES_VERSION             from the options, else the environment or the configuration file
//	CONTROL_PLANE_MACHINE_COUNT    the same, else 1
//	WORKER_MACHINE_COUNT           the same, else 0
//	others                         from the environment, else the configuration file
//
// The manifest of a local cluster, which a user can also apply with kubectl, results in these objects:
//
//	Cluster ── LocalCluster          one network
//	        └─ HostedControlPlane    one process
//	MachineDeployment ── Machine     one node: a KubeadmConfig, and a LocalMachine for its container
//	ClusterResourceSet ── ConfigMap  the Pod network; one for all clusters of the namespace ([IsShared])
//
// A conversion changes only objects of the group cluster.x-k8s.io, and leaves the rest of a file unchanged, byte for
// byte. The patches in a ClusterClass are not converted, because their paths refer to other kinds:
//
//	an older version of the group       converted
//	the target version, other groups    unchanged
//	an unknown version                  unchanged, with a note
//	an unknown field                    an error, because its value would be lost
package template
