// Package cloudinit turns a machine without cloud-init, such as a container, into a node with the bootstrap data of a
// Machine. [parse] reads the data in the form that cloud-init receives (`#cloud-config`, optionally preceded by `##
// template: jinja`, optionally gzipped), expands the instance data, and returns an ordered list of files to write and
// scripts to run. The sections bootcmd, write_files, users, ntp and runcmd become steps in the order of cloud-init's
// own modules, independent of their order in the document; unsupported sections are listed in [document.Skipped]. A
// document that cannot be parsed is an Invalid fault. The package neither accesses a file system nor runs commands: the
// backend runs the script. The controllers of LocalMachines and SSHMachines and package managementnode use this
// package.
//
// [RenderScript] renders the steps as one POSIX shell script. The script waits until the node's services respond,
// runs the steps, passes the provider ID and the address to the kubelet before the commands that start it, and records
// the running and the failed commands. It appends to /etc/default/kubelet, and to /etc/sysconfig/kubelet if that exists.
// On a machine without internet access it also creates containerd's default for all registries,
// /etc/containerd/certs.d/_default, if there is none, so that errors of image pulls contain a hint. [FindSecrets] finds
// the secrets in the data, so that the output of the script can be shown without them.
package cloudinit
