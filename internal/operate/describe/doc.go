// Package describe displays a cluster as a tree of its objects, for `slipway describe cluster` and the page of a
// cluster in `slipway ui`. [Read] reads the objects of a cluster by references, labels and owner references; [Build]
// arranges them as a tree of [Object] values with replica counts and conditions; [Render] prints the tree as a table,
// with Unicode on a terminal and plain ASCII elsewhere. Build and Render have no side effects. Provider objects are
// found through references only, and the package never writes to the API. [GetCluster] reads only the Cluster, with a
// helpful error if it does not exist; most commands use it. Package progress derives the steps of a wait from the tree,
// and packages ui and rootcause show its conditions.
//
// The tree has these parts:
//
//	Cluster
//	├─ClusterInfrastructure
//	├─ControlPlane ── Machines
//	├─Workers ── MachineDeployments, MachinePools, MachineSets ── Machines ── MachineInfrastructure ── Host, BootstrapConfig
//	├─Addons ── ClusterResourceSets
//	└─Hooks ── handlers of Runtime Extensions that block the topology
package describe
