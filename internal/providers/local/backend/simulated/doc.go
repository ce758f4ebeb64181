// Package simulated is the backend whose machines are Nodes with nothing behind them.
//
// Does: implements backend.Simulation for clusters that package internal/simulated serves: makes the Node that kubeadm
// and a kubelet would make, and changes its condition Ready on demand. What it knows of a machine is a note beside the
// objects of its cluster, so that a state that was lost is lost as a whole, and made anew by the LocalMachine.
//
// Owns: Nodes of simulated machines, when they are made, and their condition Ready.
//
// Never: deletes a Node: that is the Machine's controller, as for any machine.
//
// Read first: simulated.go.
package simulated
