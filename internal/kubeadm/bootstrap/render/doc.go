// Package cloudinit renders a payload as a cloud-config document. It writes bootcmd, write_files, disk_setup,
// fs_setup, mounts, ntp, users and runcmd in this order, after the two header lines for instance data and
// cloud-config. The document is built as a tree and then encoded, so that no value can break the structure of the
// document. Text between {{ and }} remains unchanged, because cloud-init expands it on the machine. The entry point
// is [RenderCloudConfig].
package render
