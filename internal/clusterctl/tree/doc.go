// Package tree shows a cluster as the tree of its objects.
//
// Does: reads what belongs to a cluster (by references, labels and owner references), arranges it as a tree of
// [Object] values with replica counts and conditions, and prints the tree as a table: Unicode on a terminal,
// plain ASCII elsewhere. [Read] does the reading; [Build] and [Render] are pure.
//
//	Cluster
//	├─ClusterInfrastructure
//	├─ControlPlane ── Machines
//	├─Workers ── MachineDeployments, MachinePools, MachineSets ── Machines ── MachineInfrastructure, BootstrapConfig
//	├─Addons ── ClusterResourceSets
//	└─Hooks ── what handlers of Runtime Extensions hold back
//
// Never: writes to the API, or knows a provider's kinds: they are found through references.
//
// Read first: [Object], then [Build].
package tree
