// Package admission implements defaulting and validation of objects, as pure functions of the old and the new object in
// the storage version ([Default], [Validate]). Package webhook serves them. It covers Cluster and ClusterClass (with
// package managed), Machine, MachineDeployment, MachineSet, MachinePool, MachineDrainRule, MachineHealthCheck,
// ClusterResourceSet and its binding, KubeadmConfig, KubeadmControlPlane and their templates, ExtensionConfig,
// IPAddress, IPAddressClaim, HostedControlPlane, EtcdSnapshotPolicy, the Local kinds, and the templates of Slipway's
// own kinds. There is one file for each kind. Rules that a CRD schema or CEL can express are in the CRDs.
package admission
