// Package apiserver runs kube-apiserver in this process. It builds the server from kube-apiserver flags and a
// listener, runs it, and returns its loopback client configuration for setting up the cluster. If the watch
// cache is disabled, watches still send bookmarks, and Secrets and ConfigMaps are cached. The flags for the
// management cluster and for hosted control planes are in internal/controlplane. Start at New and Server.Run.
//
// The feature gates of all components of a process are in one registry. Gates must be called once, after the
// flags of all components were parsed and before any of them runs.
package components
