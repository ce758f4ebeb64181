// Package ssh is the infrastructure provider for Linux machines that are reached over SSH. [Add] sets up the controllers of
// SSHHosts, SSHMachines, SSHClusters and SSHMachineTemplates with the connections to hosts. The decisions about objects are
// made in the packages of the controllers; this package only connects the parts. Package manager calls [Add] when it
// starts, and `slipway plan` simulates the choice of hosts with [PlannedInventory].
//
// The packages of the provider, where an arrow points to the package that is used:
//
//	ssh ─► hosts, machines ─────► inventory ─► remote ─► hosts over SSH
//	 │               └─────────────────────────► │  bundle
//	 └───► clusters ─► inventory      └─► local/cloudinit
package ssh
