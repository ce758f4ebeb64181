// Package firstboot turns bootstrap data into the script that makes a machine a node.
//
// Does: reads bootstrap data (package cloudconfig) and renders one POSIX shell script: wait until the node's services
// answer, carry out the steps in order, tell the kubelet its provider ID and address before the commands that start
// it, and log what is done. Pure.
//
// Owns: the settings in the node's /etc/default/kubelet that carry the provider ID and the node's address.
//
// Never: runs anything; the backend does.
//
// Read first: [Render].
package firstboot
