// Package cluster implements the upgrade cluster command. It shows the steps of an upgrade (package
// clusterctl/upgrade), asks for confirmation, writes the version, and waits until the control plane and all nodes have
// it (package progress). It has the same effect as a change of spec.topology.version.
package cluster
