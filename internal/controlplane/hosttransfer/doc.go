// Package custody records which data directory owns a resource on this host after it was moved between
// management clusters, because the label or the path of the resource still names the instance that created
// it.
//
//	DIR/custody/given-UID.json   resources that were transferred to another data directory, one file for each Cluster
//	DIR/custody/taken-UID.json   resources that were transferred from another data directory
//	DIR/planes/NAME/keeper       the instance that supervises a control plane during the transfer
//
// The package defines the files, the resulting ownership ([Holdings.Has]), the lock that prevents control
// planes from being started while records are written, and the location that a management cluster publishes
// about itself ([Place]). It also owns the files keeper and supervisor.lock in the directories of control
// planes. Package clusterctl/move/host decides what is transferred. The records are files and not objects,
// because tenants of a management cluster can write objects, but only the owner of the data directory can
// write these files. Start at [Holdings.Has] and [Store].
package hosttransfer
