// Package template builds the manifest of a cluster from a cluster template. The template comes from a release of an
// infrastructure provider, a URL, a file, the standard input, a ConfigMap, or this build ([Builtin]). Its variables are
// replaced, all objects are moved to the namespace of the cluster, and the ClusterClass is added if it does not exist
// in the management cluster. The package writes to no cluster, and errors never contain the value of a variable.
//
//	CLUSTER_NAME, NAMESPACE        always from the options
//	KUBERNETES_VERSION             from the options, else the environment or the configuration file
//	CONTROL_PLANE_MACHINE_COUNT    the same, else 1
//	WORKER_MACHINE_COUNT           the same, else 0
//	others                         from the environment, else the configuration file
package template
