// Package nodecapacity computes the capacity of a node of the Local provider before it exists. [Nodes.CapacityOf]
// derives the capacity and the node info from the backend, the requested resources, the operator's limits and the
// resources of the host. The cluster autoscaler reads both in the status of a LocalMachineTemplate or a
// LocalMachinePool to scale a group up from zero.
package nodecapacity
