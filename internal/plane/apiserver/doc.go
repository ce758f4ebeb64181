// Package apiserver runs kube-apiserver inside this process.
//
// Does: builds the server from kube-apiserver's own flags and a listener that
// the caller made, runs it, and gives its loopback client configuration to
// those that set the cluster up. Where there is no watch cache, watches have
// bookmarks all the same, and Secrets and ConfigMaps have a cache.
//
// Never: chooses flags; internal/plane does, for the management cluster and for
// hosted control planes.
//
// Read first: New, Server.Run. The feature gates of all components of a process
// are one registry: Gates must be called once, after the flags of all
// components are parsed and before any of them runs.
package apiserver
