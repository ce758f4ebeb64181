// Package clusterresourceset is the ClusterResourceSet controller. It applies objects from ConfigMaps and Secrets of
// the management cluster to every workload cluster that a ClusterResourceSet selects, either once or whenever they
// change. A binding for each cluster records what was applied. Contents are read from the API server when they are
// needed; the caches contain only the metadata of ConfigMaps, and the metadata of Secrets with the type for resource
// sets. The controller owns the finalizer and the status of ClusterResourceSets, their entries and owner references in
// ClusterResourceSetBindings, and the owner references of sets on ConfigMaps and Secrets. In workload clusters it
// writes all objects in the contents, with the permissions of the cluster's kubeconfig Secret. It never deletes
// objects in a workload cluster and does not check their state after it applied them. To change the controller, start
// with [snapshot] and [decide], then read apply.go. Package manager starts the controller with [Add].
//
// The path from the contents to the binding:
//
//	ConfigMap, Secret ── documents ─┐
//	                                ├─► what is not applied yet ─► workload cluster
//	Cluster ── ClusterResourceSet ──┤                                    │
//	   └─ ClusterResourceSetBinding ┘ ◄── hash, applied, when ───────────┘
package clusterresourceset
