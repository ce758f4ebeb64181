// Package rootcause explains why an object of a management cluster is not as it should be. [Explain] follows the
// conditions, plans, references and owners of an object to the object where a user, a provider or time has to act, and
// returns the way there as a [Chain] with a [Remedy]. It reads objects through the interface [Graph], which [Reader]
// implements over the API and [Memory] over objects in memory, and it never writes. `slipway explain`, `slipway describe
// cluster`, the pages of package ui and the health of package fleet call it.
//
//	Cluster demo           Available: False
//	└─MachineDeployment    Available: 2 of 3 Machines are available
//	  └─Machine demo-x     InfrastructureReady: the machine does not run
//	    └─LocalMachine     MachineStopped, since 5m   → docker start demo-x
package rootcause
