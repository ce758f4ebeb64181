// Package clusterresourceset is the ClusterResourceSet controller.
//
// Does: applies the objects that ConfigMaps and Secrets of the management cluster hold to every workload cluster that
// a ClusterResourceSet selects, once or again whenever they change, and remembers in a binding for each cluster what
// was applied.
//
//	ConfigMap, Secret ── documents ─┐
//	                                ├─► what is not applied yet ─► workload cluster
//	Cluster ── ClusterResourceSet ──┤                                    │
//	   └─ ClusterResourceSetBinding ┘ ◄── hash, applied, when ───────────┘
//
// Contents are read when they are needed, past every cache: the process watches no more of ConfigMaps than their
// metadata, and of Secrets only those of the type for resource sets.
//
// Owns: of ClusterResourceSets: finalizer and status. ClusterResourceSetBindings: in each the entry of the set, and
// its owner reference. The owner reference of the set on its ConfigMaps and Secrets. In workload clusters: whatever
// the documents say, with the rights that the cluster's kubeconfig Secret gives.
//
// Never: removes anything from a workload cluster, nor looks at what became of it there.
//
// Read first: [Snapshot], [Decide], then apply.go.
package clusterresourceset
