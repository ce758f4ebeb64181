// Package rollout plans how a MachineDeployment replaces its Machines, for the MachineDeployment controller. It
// compares the template of a MachineSet or Machine with the template of the deployment ([Differences]), and computes
// the next number of replicas of each MachineSet ([Plan]). The input is a [DeploymentState]: the MachineSets with their
// replica counts ([MachineSet]), the resolved strategy ([Limits]) and the deployment. Repeating the plan while its
// changes take effect converges on one MachineSet with all replicas. Machines that an extension can update in place
// move from their MachineSet to the new one instead of being deleted ([Moving]). The package implements maxSurge,
// maxUnavailable, rollout.after and maxInFlight, and defines which template fields require a new Machine. It is
// deterministic: it accesses neither the API nor the clock, and the caller provides times and seeds. The Machine,
// MachineSet and KubeadmControlPlane controllers, package machines and `slipway rollout status` use single functions of
// it.
//
//	DeploymentState ─► Plan ─► []Change ─► the MachineSets' replicas ─► Machines change ─► DeploymentState …
package rollout
