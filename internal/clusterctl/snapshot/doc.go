// Package snapshot finds, takes and restores snapshots of the etcd of workload clusters, for people who ask for one.
//
// Does: lists what the status of EtcdSnapshotPolicies says ([List]), asks a policy for a snapshot and waits for it ([Take]), says what a
// restore would lose ([Prepare]), asks for it and waits until it is done ([Restore.Run]).
//
// Never: reaches a store, a member of etcd or the folder of a control plane: the controllers do, on the host where these are.
//
// Read first: [List].
package snapshot
