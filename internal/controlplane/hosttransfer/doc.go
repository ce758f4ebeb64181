// Package hosttransfer records which data directory owns a resource on this host after it was moved between management
// clusters, because the label or the path of the resource still names the instance that created it. [Ownership.Owns]
// evaluates the records, which a [Store] reads and writes. The lock of the store prevents control planes from being
// started while records are written. The records are files and not objects, because tenants of a management cluster can
// write objects, but only the owner of the data directory can write these files. The package also defines the location
// that a management cluster publishes about itself ([Location]), and the supervisor that is assigned to a control
// plane. Package internal/clusterctl/move decides what is transferred. `slipway move` writes the records, and packages
// supervisor and local/container read them.
//
// The files of the package, whose names and JSON fields must stay, because existing data directories contain them:
//
//	DIR/custody/given-UID.json        resources that were transferred to another data directory, one file for each Cluster
//	DIR/custody/taken-UID.json        resources that were transferred from another data directory
//	DIR/planes/NAME/keeper            the instance that supervises a control plane during the transfer
//	DIR/planes/NAME/supervisor.lock   the lock of the supervisor of a control plane
package hosttransfer
