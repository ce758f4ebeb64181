// Package upgrade changes the Kubernetes version of a cluster with a topology, and controls rollouts. [NewPlan] plans
// an upgrade: the versions of the control plane and the workers step by step, the number of nodes that are replaced,
// and the reasons why groups are held back. [Apply] sets the version. The topology controller determines the order and
// performs the upgrade with package lifecycle, which also computes this plan. [Restart], [Pause] and [Resume] change
// the rollouts of MachineDeployments and KubeadmControlPlanes, and [ReadRollout] reports the progress of a rollout,
// also of a MachinePool. The package sets fields on behalf of a user; the controllers replace the Machines. `slipway
// upgrade cluster` and `slipway rollout` use this package, and the rotation of a CA restarts MachineDeployments with
// it.
//
// The commands for rollouts change these fields:
//
//	              MachineDeployment     KubeadmControlPlane
//	restart       spec.rollout.after    spec.rollout.after
//	pause         spec.paused           annotation cluster.x-k8s.io/paused
//	resume        the same, removed     the same, removed
package upgrade
