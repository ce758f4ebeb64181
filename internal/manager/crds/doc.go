// Package crds embeds the CustomResourceDefinitions of all kinds that Slipway serves, and installs them. [All] returns
// the CRDs of the Cluster API groups and of Slipway's own groups, with the properties that the markers on the Go types
// do not define: contract version labels, the provider label and the conversion. [Install] writes changed CRDs to a
// cluster with server-side apply and waits until they are established. The annotation slipway.dev/content-hash records
// the applied content. Package webhook calls Install when the manager starts. `slipway plan` reads the kinds of this
// build with All. Package clusterctl/install migrates the objects of other providers.
//
// After a change of a CRD, a [Migrator] rewrites objects that may be stored in an older version, sets
// status.storedVersions to the storage version, and removes managed fields entries in versions that are no longer
// served, once for each generation of the CRD. The content of the objects does not change.
//
// The schemas come from the Go types: `go run ./hack/crds` (make generate) writes
// generated/crds.json.gz, which git ignores. Without this file the package compiles, and All returns an error
// that names the command. Start at labels.go and install.go.
package crds

//go:generate sh -c "cd ../../.. && go run ./hack/crds"
