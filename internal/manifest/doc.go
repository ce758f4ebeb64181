// Package manifest reads and writes Kubernetes manifests: streams of YAML or JSON documents with one object each. It is
// a package of its own, below all commands, so that they read manifests alike, without importing a controller or the
// simulation of `slipway plan`.
package manifest
