// Package render computes bootstrap data from a KubeadmConfig. It first converts the KubeadmConfig to a [Payload], a
// list of files, users, disks and commands that is independent of the bootstrap format: each role has its own function
// ([Init], [JoinControlPlane], [Join]), which resolves content from Secrets, templates and passwords, and adds
// kubeadm's configuration, control plane certificates, the kubeconfig of file discovery, and the sentinel file. A
// format then renders the payload ([CloudConfigFormat], [IgnitionFormat]). Content that a format does not support is an
// Invalid fault. The controller in package bootstrap reads the Secrets and chooses the token.
//
//	KubeadmConfig + Secrets + versions ─► Init │ JoinControlPlane │ Join ─► Payload ─┬► cloud-config
//	                                                                                 └► Ignition
//
// A cloud-config document has bootcmd, write_files, disk_setup, fs_setup, mounts, ntp, users and runcmd in this order,
// after the two header lines for instance data and cloud-config. It is built as a tree and then encoded, so that no
// value can break the structure of the document. Text between {{ and }} remains unchanged, because cloud-init expands
// it on the machine.
//
// An Ignition 2.3 configuration, for operating systems such as Flatcar, has files, users, disks, file systems, mounts,
// NTP, and the unit kubeadm.service, which runs the commands once. Ignition runs before the switch to the final root
// file system, so nothing is written to /run. Kubeadm's configuration is at /etc/kubeadm.yml, as expected by user
// commands.
//
//	Payload ─► files, passwd, disks, units ─► + additionalConfig (transpiled) ─► validated ─► JSON
package render
