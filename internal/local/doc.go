// Package local is the infrastructure provider for this host. [Add] sets up the controllers of LocalClusters,
// LocalMachines, LocalMachinePools and LocalMachineTemplates with the backends that run nodes, and removes host
// resources whose objects no longer exist. Decisions about objects are made in the packages of the controllers.
//
//	local ── cluster, machine ── wake ── backend ◄── backend/container ── Docker
//	  │          └── firstboot, subnet
//	  └───── machinepool, machinetemplate ── offer ── backend
package local
