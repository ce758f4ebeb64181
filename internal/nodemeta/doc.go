// Package nodemeta synchronizes labels, annotations and taints from a Machine to its Node. It selects labels and
// annotations by the domain of their key and by additional regular expressions. Metadata that the Machine no longer
// has is removed from the Node; all other metadata of the Node stays unchanged. The package changes Node objects in
// memory only. The controllers of Machines and MachinePools share it, because a MachinePool without Machines labels
// its Nodes itself. To change it, start with [Metadata].
package nodemeta
