// Package topology is the topology controller: it keeps what a Cluster of a ClusterClass consists of.
//
// Does: reads the Cluster, its class with the templates, and what exists; lets package topology compute what there should be; and
// writes the difference.
//
//	Cluster.spec.topology ─┐
//	ClusterClass ──────────┼─► desired state ─► InfraCluster, ControlPlane ─► references of the Cluster
//	its templates ─────────┘                 ├► templates ─► MachineDeployments, MachinePools
//	                                         └► MachineHealthChecks
//
// # What is written
//
// Fields that the class, the topology or a patch sets are applied server-side under the field manager capi-topology; whatever else
// an object has belongs to others and stays. An object is compared with what is to be applied first, values and ownership, so that
// nothing is sent where nothing would change, and drift of a field that the topology sets is seen. For a template of machines that
// differs the API server is asked, with a dry run, whether its spec would change: then a new template is created, what refers to the
// old one is switched over, and the old one is deleted when nothing uses it.
//
// An API server or a webhook may store another form of a value than the one that was sent. Such an object differs forever; after one
// apply that has not changed it, it is left alone until it changes or the desired state does ([topology.Attempts]).
//
// Owns: InfraCluster, ControlPlane, templates, MachineDeployments, MachinePools and MachineHealthChecks of Clusters with a topology, as
// far as the topology sets their fields. Of Clusters with a topology: spec.infrastructureRef and spec.controlPlaneRef where they are
// not set, two labels, the condition TopologyReconciled with the upgrade plans, the annotations of lifecycle hooks, and the one that
// lists the workers (record.go).
//
// Never: deletes anything of a Cluster that is being deleted (the Cluster controller does), a template that a MachineSet uses (the
// MachineSet controller does, when it releases it), or what it has not created.
//
// Read first: [Snapshot], [Decide], then package topology below internal.
package topology
