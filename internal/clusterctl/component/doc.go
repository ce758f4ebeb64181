// Package component is the objects of a provider, as they are installed.
//
// Does: makes them from the components file of a release:
//
//	variables   replaced; those without a value are an error that lists them
//	images      overridden as the configuration file says
//	Namespace   at most one in the file; its name is the target namespace, unless another was chosen; none of both is an error
//	namespaced  every object, subject of a role binding, service of a webhook, and certificate is in the target namespace
//	labels      clusterctl.cluster.x-k8s.io and cluster.x-k8s.io/provider on every object
//	order       Namespace, objects of cert-manager, then as in the file
//
// Says which variables and images there are, and in which order the objects can be installed.
//
// Never: talks to a cluster; puts values of variables into errors.
//
// Read first: [New], then [Components].
package component
