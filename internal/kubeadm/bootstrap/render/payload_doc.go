// Package payload converts a KubeadmConfig to a [Payload], a list of files, users, disks and commands that is
// independent of the bootstrap format. It resolves content from Secrets, templates and passwords, and adds the
// configuration of kubeadm, control plane certificates, the kubeconfig of file discovery, and the sentinel file. Each
// role has its own function.
//
//	KubeadmConfig + Secrets + versions ─► Init │ JoinControlPlane │ Join ─► Payload ─► format (cloudinit, ignition) ─► bytes
//
// The controller reads the Secrets and chooses the token. Start reading at [Payload] and [Join].
package render
