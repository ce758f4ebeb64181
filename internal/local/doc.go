// Package local is the infrastructure provider for this host: each node is a container of the Docker Engine on the
// host, or a simulated machine. [Add] sets up the controllers of LocalClusters, LocalMachines, LocalMachinePools and
// LocalMachineTemplates with the backends that run nodes, and a task that removes host resources whose objects no
// longer exist. [Gateways] looks up the host's address in the network of a cluster for the hosted control planes. The
// decisions about objects are made in the packages of the controllers; this package only connects the parts. Package
// manager calls [Add] and [NewGateways] when it adds the controllers.
//
// The packages of the provider, where an arrow points to the package that is used:
//
//	local ─► cluster, machine ────────► backend ◄── container ─► Docker
//	  │         └─► cloudinit, subnet     ▲   ▲       └─► loadbalancer, subnet
//	  └────► machinepool ────────────────┘   └── simulated ─► internal/simulated
package local
