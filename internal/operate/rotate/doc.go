// Package rotate rotates the certificate authority (CA) of a cluster with a hosted control plane while the cluster is
// running. It reads the progress from Secret <cluster>-ca ([read]), computes the next step ([decide], without side
// effects), executes it, and waits until the control plane and all nodes have followed ([Rotator.Run]). The command can
// be killed at any time, and continues when it is run again. During a rotation the package owns tls.crt and tls.key of
// the Secret, its keys next.key, previous.key and rotation, and spec.rollout.after of MachineDeployments, or of their
// topology if it is set there. A private key is never written anywhere but to the Secret. A CA with a chain of its own,
// or the CA of a KubeadmControlPlane, is not supported; kubeadm supports only one CA at a time. `slipway rotate
// authority` uses this package.
//
// The phases of a rotation are:
//
//	Phase       tls.crt    tls.key   also stored     prerequisite of the next phase
//	None        old        old                       no rollout is in progress
//	TrustBoth   old, new   old       key of the new  the control plane trusts both; all nodes are replaced
//	NewSigns    new, old   new       key of the old  the control plane signs with the new; all nodes are replaced again
//	NewAlone    new        new                       the control plane rejects the old
//
// When a phase is in effect, the names of the existing Machines are recorded in the Secret: each may have been
// bootstrapped with the previous CA bundle, and the next phase starts when none of them is left. Names are recorded
// instead of times, because clocks differ and clusterctl move recreates all objects with the same names.
package rotate
