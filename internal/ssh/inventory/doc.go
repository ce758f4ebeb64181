// Package inventory selects SSHHosts for SSHMachines and returns how to reach them. It decides which namespaces a host
// is offered to ([IsOffered]), which host a new machine claims ([Request.Choose]) and why there is none, writes claims
// ([Claim], [Release] and [Drop]), and reads the address and the credentials of a host ([Target]). The functions about
// offers and choices are pure. A claim is written with the resource version of the SSHHost as a precondition, so that
// two machines never get the same host. The controllers of SSHMachines, SSHHosts, SSHClusters and SSHMachineTemplates
// use it, and so do `slipway create cluster`, `slipway logs node` and the commands under `slipway hosts`.
package inventory
