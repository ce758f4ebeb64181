// Package rotation replaces the certificate authority of a cluster with a hosted control plane while the cluster runs.
//
// Does: reads from Secret <cluster>-ca how far a rotation is ([Read]), says what comes next ([Decide], pure), does it, and waits until the
// control plane and all nodes have followed ([Order.Run]). It may be killed at any point, and continues when it is run again:
//
//	Phase       tls.crt    tls.key  kept beside        what it waits for
//	None        old        old                         nothing is rolled out
//	TrustBoth   old, new   old      key of the new     the control plane trusts both; all nodes are replaced
//	NewSigns    new, old   new      key of the old     the control plane signs with the new; all nodes are replaced again
//	NewAlone    new        new                         the control plane refuses the old
//
// When a phase is in effect, the names of the Machines that exist are recorded in the Secret: each may have been bootstrapped with what
// was before, and the next phase begins when none of them is left. Names and no times: clocks differ, and clusterctl move creates all
// objects again, with their names.
//
// Owns: tls.crt and tls.key of Secret <cluster>-ca during a rotation, and its keys next.key, previous.key and rotation;
// spec.rollout.after of MachineDeployments, or of their topology where that has one.
//
// Never: writes a private key anywhere but into the Secret; changes an authority with a chain of its own, or one of a
// KubeadmControlPlane: kubeadm knows one authority at a time.
//
// Read first: [Read], then [Decide].
package rotation
