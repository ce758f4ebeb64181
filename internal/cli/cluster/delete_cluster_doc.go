// Package cluster implements the delete cluster command. It deletes a Cluster and waits until the Cluster and all its
// objects are gone (package progress). The controllers delete the objects.
package cluster
