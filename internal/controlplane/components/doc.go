// Package components runs kube-apiserver, kube-controller-manager and kube-scheduler in this process. It builds each
// from its own flags, without serving ports except the API server's and without leader election. [Components] are all
// three for a workload cluster: the API server starts first, the others when it is ready, and they stop in reverse
// order. A management cluster composes [APIServer], [ControllerManager] and [Scheduler] itself. [Group] ends all parts
// of a control plane when one ends. If the watch cache is disabled, watches of the API server still send bookmarks, and
// Secrets and ConfigMaps are cached (bookmarks.go). Post-start hooks that would end the process on a slow host are
// retried instead (poststarthooks.go). Flags, etcd and files are the caller's responsibility.
//
// The package is compiled into programs of several Kubernetes versions (internal/controlplane/program), therefore the
// parts of Kubernetes that it imports must have the same API in all of them. The feature gates of all components of a
// process are in one registry: [APIServer.ApplyFeatureGates] must be called once, after the flags of all components
// were parsed and before any of them runs. Package controlplane and the program of another Kubernetes version
// create the components.
package components
