// Package simulated is the backend whose machines consist only of a Node, for the clusters that package
// internal/simulated serves. After the configured startup duration it creates the Node that kubeadm and a kubelet would
// create. The first machine of a control plane creates its cluster with the objects of kubeadm init, and each control
// plane machine is a member of the simulated etcd. The backend stores the state of a machine next to the objects of its
// cluster, so that both are lost together and the LocalMachine is created again as a whole. It has no networks, and it
// does not delete Nodes, because the Machine controller does so, as for any machine. Package local adds it to its
// backends ([New]).
//
// [WrapFaulty] adds faults to the backend, so that neither the backend nor the decisions need to know about them. The
// annotations of an object request a fault: a machine that never starts, a Node that is not ready, a control plane with
// a failed etcd member or Pod, a cluster that is never provisioned.
package simulated
