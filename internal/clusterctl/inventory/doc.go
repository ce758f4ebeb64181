// Package inventory defines the inventory of providers installed in a management cluster: one object of kind Provider
// in group clusterctl.cluster.x-k8s.io for each, in the namespace of the provider. It reads the inventory ([Read]) and
// builds the objects and their CRD. An unfinished installation is marked, so that the next `slipway init` or `delete`
// can complete or delete it. The package does not write; package install does, as steps of its plan.
package inventory
