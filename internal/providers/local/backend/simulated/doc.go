// Package simulated is the backend whose machines are Nodes with nothing behind them.
//
// Does: is a backend for the clusters that package internal/simulated serves: creates the Node that kubeadm and a kubelet
// would create, once the machine has taken as long to start as it is told to, and changes the Node's condition Ready for
// package faulty. What it knows of a machine is a note beside the objects of its cluster, so that a state that was lost is
// lost as a whole, and the LocalMachine has it created again. There are no networks.
//
// Owns: Nodes of simulated machines, when they are created, and their condition Ready; the count of simulated machines.
//
// Never: deletes a Node: that is the Machine's controller, as for any machine.
//
// Read first: terms.go, then simulated.go.
package simulated
