// Package simulated is the backend whose machines consist only of a Node, for the clusters that package
// internal/simulated serves. After the configured startup duration it creates the Node that kubeadm and a kubelet would
// create, and changes the Node's condition Ready for package faulty. It stores the state of a machine next to the
// objects of its cluster, so that both are lost together and the LocalMachine is created again as a whole. The backend
// has no networks. It does not delete Nodes, because the Machine controller does so, as for any machine.
package simulated
