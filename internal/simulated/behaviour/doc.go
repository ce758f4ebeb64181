// Package behaviour plays the parts of simulated clusters that are not their API server.
//
// Does: what clients of a cluster rely on besides its API. Pods that are bound to a Node run at once, end at once when
// they are deleted, and vanish with their Node. PodDisruptionBudgets have a true status, by the controller of
// Kubernetes itself, which runs for clusters that have budgets. Namespaces that are deleted empty themselves, by the
// deleter of Kubernetes itself. All clusters share a few workers, which changes of keys wake; a cluster where nothing
// happens costs nothing.
//
// Owns: the status of bound Pods, of PodDisruptionBudgets, the finalizer of Namespaces.
//
// Never: schedules Pods, makes Pods for Deployments or DaemonSets, collects garbage, or makes Nodes.
//
// Read first: life.go, then kubelet.go.
package behaviour
