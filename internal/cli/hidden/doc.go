// Package hidden implements the commands that other processes start. Users do not call them. It also contains the
// checks of this host that commands make before they write a Cluster.
//
// The commands, and the processes that start them:
//
//	control-plane run  package controlplane/supervisor, or a StatefulSet of hosted/statefulset
//	load-balancer run  package local/loadbalancer
//	plane run          tests: the management cluster without controllers
//
// The process of a hosted control plane runs the control plane of a configuration file in the foreground and rotates
// its log. With --user it transfers the folder to that user and switches to it. In a Pod, it first copies a mounted
// Secret into its folder (--delivery), and logs to standard output.
//
// The checks read this host and not the management cluster. [UnsupportedVersion] and [NewerVersions] compare a
// Kubernetes version with the versions in the data directory. [HostNetworks] returns the networks in use, and the
// ranges that the operator allows. If the management cluster runs on another host, the controllers report these
// problems.
package hidden
