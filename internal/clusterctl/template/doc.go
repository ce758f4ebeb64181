// Package template makes the manifest of a cluster from a cluster template.
//
// Does: reads a template from where it is: a release of an infrastructure provider, an address, a file, the standard input, or
// a ConfigMap; replaces its variables, puts everything into the namespace of the cluster, and adds the ClusterClass that
// the template names where the management cluster does not have it. Has the templates of this build ([Builtin]).
//
//	CLUSTER_NAME, NAMESPACE        given, always
//	KUBERNETES_VERSION             given, else that of the environment or the configuration file
//	CONTROL_PLANE_MACHINE_COUNT    given, else the same, else 1
//	WORKER_MACHINE_COUNT           given, else the same, else 0
//	others                         the environment, then the configuration file
//
// Never: writes to a cluster; puts the value of a variable into an error.
//
// Read first: [New], then [Source].
package template
