// Package component is the components of a release: what an administrator applies to have providers run as Deployments.
//
// Does: makes the objects of one provider ([Of]), or of one manager that runs all of them ([Together]), from the list of provider
// sets, the CRDs and webhook configurations of the manager, and config/rbac. What comes with the Deployments is here: Namespace,
// ServiceAccount, Service, PodDisruptionBudget, NetworkPolicy, and the arguments with the variables of feature gates.
//
// Owns: the names slipway-PROVIDER and slipway-PROVIDER-system of a release.
//
// Never: holds a rule of RBAC, a schema or a webhook; writes to a cluster.
//
// Read first: [Of], then workload.go.
package component
