// Package component builds the objects to install for a provider from the components file of a release ([NewComponents]). It
// lists the variables and images of the file, and sorts the objects for installation ([InstallOrder]). It accesses no
// cluster, and errors never contain the values of variables.
//
//	variables   replaced; an error lists those without a value
//	images      overridden according to the configuration file
//	Namespace   at most one in the file; its name is the target namespace, unless another one is specified
//	namespaced  objects, subjects of role bindings, services of webhooks and Certificates use the target namespace
//	labels      clusterctl.cluster.x-k8s.io and cluster.x-k8s.io/provider on every object
//	order       Namespace, cert-manager objects, then as in the file
//
// It is an error if the target namespace is neither specified nor in the file.
package repository
