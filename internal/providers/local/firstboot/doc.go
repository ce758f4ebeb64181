// Package firstboot turns bootstrap data into the script that makes a machine a node.
//
// Does: reads bootstrap data (package cloudconfig) and renders one POSIX shell script: wait until the node's services
// answer, carry out the steps in order, tell the kubelet its provider ID and address before the commands that start
// it, and log what is done; on a machine without a way out of the host, let the error of a pull say so. Pure.
//
// Owns: the settings in the node's /etc/default/kubelet that carry the provider ID and the node's address, and the file of
// containerd about registries that nothing else is said of (/etc/containerd/certs.d/_default), where there is no way out.
//
// Never: runs anything; the backend does.
//
// Read first: [Render].
package firstboot
