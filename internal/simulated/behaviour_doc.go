// Package behaviour simulates the components of a cluster other than its api server. Pods that are bound to a Node run
// immediately, terminate immediately when they are deleted, and disappear with their Node. The PodDisruptionBudget
// controller of Kubernetes runs for clusters with budgets and updates their status. The namespace deleter of Kubernetes
// empties deleted namespaces and removes their finalizer. Pods are not scheduled or created for Deployments and
// DaemonSets; there is no garbage collection, and Nodes are not created. All clusters share a few workers, which
// process changes of keys; a cluster without changes uses no resources. Start with life.go, then kubelet.go.
package simulated
