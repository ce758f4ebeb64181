// Package release writes a release into a folder: provider repositories as clusterctl reads them, and the program.
//
// Does: lays the files out ([Write]):
//
//	PROVIDER/VERSION/      TYPE-components.yaml, metadata.yaml; with the infrastructure, cluster templates and ClusterClasses;
//	                       with the core, the OpenAPI document of the hooks
//	slipway/VERSION/       archive, Debian package, image layout, bill of materials, the manager of all providers, SHA256SUMS
//
// The same binary, version and time give the same bytes.
//
// Owns: these two folders of the version; what other versions left there stays.
//
// Never: has a manifest of its own; packages component and template make them from what the manager uses itself. Builds the binary.
//
// Read first: [Write], then repository.go.
package release
