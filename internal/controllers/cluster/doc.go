// Package cluster is the Cluster controller.
//
// Does: connects a Cluster with its infrastructure and its control plane, takes
// over what they report (provisioned, initialized, endpoint, failure domains),
// writes the kubeconfig of clusters that have no control plane object, shows the
// state of everything below the Cluster in its status, and deletes all of it in
// order.
//
//	InfraCluster ── provisioned, endpoint, failure domains ──┐
//	ControlPlane ── initialized, endpoint, counters ─────────┼─► Cluster: status, conditions, spec.controlPlaneEndpoint
//	MachineDeployments, MachinePools, MachineSets, Machines ─┤
//	connection to the workload cluster ──────────────────────┘
//
//	deletion:  workers ─► control plane ─► infrastructure ─► finalizer
//
// Owns: of Clusters: finalizer, spec.controlPlaneEndpoint where it is not set,
// and the status except the condition TopologyReconciled. Of InfraCluster and
// ControlPlane: owner and cluster label. The Secret <cluster>-kubeconfig of
// clusters without controlPlaneRef.
//
// Never: creates infrastructure or control planes, or deletes the Machines of a
// control plane that has an object of its own.
//
// Read first: [Snapshot], [Decide], then conditions.go.
package cluster
