// Package rollout controls the rollouts of MachineDeployments and KubeadmControlPlanes.
//
// Does: restarts, pauses and resumes a rollout; says how far one is, also of a MachinePool.
//
//	              MachineDeployment     KubeadmControlPlane
//	restart       spec.rollout.after    spec.rollout.after
//	pause         spec.paused           annotation cluster.x-k8s.io/paused
//	resume        the same, removed     the same, removed
//
// Owns: these fields, when a person asks for it.
//
// Never: replaces Machines itself; the controllers do.
//
// Read first: [Parse], then [Restart] and [Read].
package rollout
