// Package rollout restarts, pauses and resumes rollouts of MachineDeployments and KubeadmControlPlanes, and reports the
// progress of a rollout, also of a machinePool. It sets the following fields on behalf of a user; the controllers
// replace the Machines.
//
//	              MachineDeployment     KubeadmControlPlane
//	restart       spec.rollout.after    spec.rollout.after
//	pause         spec.paused           annotation cluster.x-k8s.io/paused
//	resume        the same, removed     the same, removed
package upgrade
