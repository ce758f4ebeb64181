// Package topology is the topology controller, which manages the objects of Clusters with a ClusterClass. It reads the
// Cluster, its class with the templates, and the existing objects. The engine in internal/topology computes the
// desired state, and the controller writes the differences. Fields that the class, the topology or a patch sets are
// applied server-side with the field manager capi-topology; all other fields of an object are left unchanged. Before
// an apply, the object is compared with the desired values and field ownership, so that no request is sent without an
// effect, and drift of the topology's fields is detected. An API server or a webhook may store a value in another form
// than the one that was sent. Such an object always differs; after one apply that did not change it, it is not applied
// again until the object or the desired state changes ([topology.Attempts]). The controller never deletes objects of a
// Cluster that is being deleted (the Cluster controller does), a template that a MachineSet uses (the MachineSet
// controller does when it no longer needs it), or objects that it has not created. To change it, start with [snapshot]
// and [decide], then read package internal/topology. Package manager starts the controller with [Add].
//
// The inputs, and the objects in the order in which they are written:
//
//	Cluster.spec.topology ─┐
//	ClusterClass ──────────┼─► desired state ─► InfraCluster, ControlPlane ─► references of the Cluster
//	its templates ─────────┘                 ├► templates ─► MachineDeployments, MachinePools
//	                                         └► MachineHealthChecks
//
// If a template of machines differs, a dry run checks whether its spec would change:
//
//	its spec stays the same   apply the template
//	its spec would change     create a new template, switch the references, delete the old one when it is unused
//
// The controller owns these fields:
//
//	objects of the topology   the fields that the topology sets in the infrastructure cluster, the control plane,
//	                          templates, MachineDeployments, MachinePools and MachineHealthChecks
//	Cluster                   spec.infrastructureRef and spec.controlPlaneRef if they are not set, two labels, the condition
//	                          TopologyReconciled with the upgrade plans, the annotations of lifecycle hooks, and the
//	                          annotation that lists the workers (workers.go)
package topology
