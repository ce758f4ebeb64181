// Package cloudinit writes a payload as a cloud-config document.
//
// Does: renders bootcmd, write_files, disk_setup, fs_setup, mounts, ntp, users and runcmd, in this order,
// behind the two lines that make cloud-init expand instance data and read cloud-config. The document
// is built as a tree and encoded, never pasted together, so that no value can break out of its place. Text
// between {{ and }} is left to cloud-init, which expands it on the machine.
//
// Never: resolves content, or adds work of its own.
//
// Read first: [Render].
package cloudinit
