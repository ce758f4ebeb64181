// Package custody says which slipway of this host has what is on it, where that does not follow from a label or a folder: what was
// handed over from one data directory to another keeps the label of the instance that made it.
//
//	DIR/custody/given-UID.json   what this data directory gave to another one, a file for each Cluster
//	DIR/custody/taken-UID.json   what it took from another one
//	DIR/planes/NAME/keeper       the instance that a control plane is kept by, while it is handed over
//
// Does: the files, what they mean for one thing ([Holdings.Has]), the lock that keeps control planes from being started while
// records are written, and what a management cluster says of where it runs ([Place]).
//
// Owns: the folder custody of a data directory, and the files keeper and supervisor.lock in the folders of control planes.
//
// Never: decides what is handed over (package clusterctl/move/host), believes anything that is in an object: who may write these
// files may write everything else of the data directory, and tenants of a management cluster may not.
//
// Read first: [Holdings.Has], then [Book].
package custody
