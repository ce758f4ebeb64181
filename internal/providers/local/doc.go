// Package local is the infrastructure provider for this host.
//
// Does: puts together the controllers of LocalClusters, LocalMachines, LocalMachinePools and LocalMachineTemplates
// with the backend that runs nodes ([Add]), and removes from the host what belongs to objects that are gone.
//
//	local ── cluster, machine ── wake ── backend ◄── backend/container ── Docker
//	  │          └── firstboot, subnet
//	  └───── machinepool, machinetemplate ── offer ── backend
//
// Never: decides anything about an object.
//
// Read first: [Add], then machine.
package local
