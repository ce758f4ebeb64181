// Package release writes a release into a directory: provider repositories for clusterctl and the files of the program.
// [Write] creates this layout:
//
//	PROVIDER/VERSION/      TYPE-components.yaml, metadata.yaml; with the infrastructure, cluster templates and ClusterClasses;
//	                       with the core, the OpenAPI document of the hooks
//	slipway/VERSION/       archive, Debian package, image layout, bill of materials, the manager of all providers, SHA256SUMS
//
// The output is reproducible: it depends only on the binary, the version and the time. Directories of other versions
// are left unchanged. The packages component and template generate all manifests from those that the manager itself
// uses.
package release
