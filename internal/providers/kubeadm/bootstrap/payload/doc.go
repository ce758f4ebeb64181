// Package payload says what a machine has to do to become a node, in no format yet.
//
// Does: resolves a KubeadmConfig (content from Secrets, templates, passwords, kubeadm's configuration file,
// the certificates of a control plane, the kubeconfig of file discovery, the sentinel) into a [Payload], the plain
// list of files, users, disks and commands that every bootstrap format can write. Each role has a function of its own.
//
//	KubeadmConfig + Secrets + versions ─► Init │ JoinControlPlane │ Join ─► Payload ─► a format (cloudinit, ignition) ─► bytes
//
// Never: reads a Secret (the controller hands their contents in), chooses a token, or knows a format.
//
// Read first: [Payload], then [Join].
package payload
