// Package firstboot converts bootstrap data to the script that turns a machine into a node. [RenderFirstBoot] parses bootstrap
// data (package cloudconfig) and renders one POSIX shell script. The script waits until the node's services respond,
// runs the steps in order, passes the provider ID and the address to the kubelet before the commands that start it, and
// logs its steps. On a machine without internet access it also configures containerd so that errors of image pulls
// contain a hint. The backend runs the script. The script appends to /etc/default/kubelet and, without internet access,
// creates containerd's default for all registries, /etc/containerd/certs.d/_default, if there is none.
package cloudinit
