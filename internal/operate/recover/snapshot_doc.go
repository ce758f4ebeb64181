// Package snapshot lists, takes and restores etcd snapshots of workload clusters for the CLI. It reads the status of
// EtcdSnapshotPolicies ([ListSnapshots]), requests a snapshot from a policy and waits for it ([Order.Take]), computes the data
// that a restore would lose ([Order.Prepare]), and requests a restore and waits for it ([Order.Run]). It never accesses
// a store, an etcd member or the data directory of a control plane; the controllers do so on the host that has them.
package recover
