// Package release writes a release into a directory: provider repositories for clusterctl, and the files that contain
// the program: archive, Debian package, image and bill of materials ([Write]). `make release` (hack/release) calls
// [Write]. Package clusterctl/template reads the same templates for `slipway generate cluster`. The output is
// reproducible: it depends only on the binary, the version and the time. The components, which cluster administrators
// apply to run providers as Deployments, are generated from the list of provider sets, the CRDs and webhook
// configurations of the manager, and the RBAC rules in config/rbac: for one provider ([providerObjects]), or for one
// manager that runs all of them ([managerObjects]). The cluster templates ([Flavors]) are derived from the examples:
// the properties of a single cluster (name, namespace, version, number of nodes, network) become variables.
//
// A release has this layout; directories of other versions are left unchanged:
//
//	PROVIDER/VERSION/      TYPE-components.yaml, metadata.yaml; with the infrastructure, cluster templates and ClusterClasses;
//	                       with the core, the OpenAPI document of the hooks
//	slipway/VERSION/       archive, Debian package, image layout, bill of materials, the manager of all providers, SHA256SUMS
package release
