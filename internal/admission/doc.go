// Package admission decides what objects become by default, and which are refused.
//
// Does: Default and Validate, pure functions over the old and the new form of an object in its stored version. One
// file per kind; rules that a CRD's schema or CEL can express are there and not here.
//
// Owns: the defaults and the messages of these kinds: Cluster, ClusterClass (with package managed), Machine,
// MachineDeployment, MachineSet, MachinePool, MachineDrainRule,
// MachineHealthCheck, ClusterResourceSet and its binding,
// KubeadmConfig, KubeadmControlPlane and their templates, ExtensionConfig,
// IPAddress and IPAddressClaim, LocalCluster, LocalMachine and LocalMachinePool, and the templates of our own kinds.
//
// Never: I/O. Package webhook serves these functions; nothing here knows HTTP or the API server.
//
// Read first: admission.go.
package admission
