// Package cluster is the Cluster controller. It connects a Cluster with its infrastructure and its control plane and
// copies their results (provisioned, initialized, endpoint, failure domains). It writes the kubeconfig of Clusters
// without a control plane object, reports the state of all objects of the Cluster in its status, and deletes these
// objects in order. It never creates infrastructure or control planes, and never deletes the Machines of a control
// plane object. It owns the finalizer of Clusters, spec.controlPlaneEndpoint if it is not set, and the status except
// for the condition TopologyReconciled, the owner reference and the cluster label of InfraCluster and control plane,
// and the Secret <cluster>-kubeconfig of Clusters without controlPlaneRef. To change the controller, start with
// [snapshot] and [decide], then read conditions.go. Package manager starts the controller with [Add].
//
// The inputs of the status, and the order of the deletion:
//
//	InfraCluster ── provisioned, endpoint, failure domains ──┐
//	ControlPlane ── initialized, endpoint, counters ─────────┼─► Cluster: status, conditions, spec.controlPlaneEndpoint
//	MachineDeployments, MachinePools, MachineSets, Machines ─┤
//	connection to the workload cluster ──────────────────────┘
//
//	deletion:  workers ─► control plane ─► infrastructure ─► finalizer
package cluster
