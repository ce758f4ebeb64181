// Package component generates the components of a release, which cluster administrators apply to run providers as
// Deployments. It generates the objects of one provider ([ProviderObjects]), or of one manager that runs all of them ([ManagerObjects]),
// from the list of provider sets, the CRDs and webhook configurations of the manager, and the RBAC rules in
// config/rbac. This package itself contains the workload: Namespace, ServiceAccount, Service, PodDisruptionBudget,
// NetworkPolicy, Deployment, and its arguments with the variables of feature gates.
package release
