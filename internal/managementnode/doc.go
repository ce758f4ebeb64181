// Package managementnode keeps one node, a container, in an embedded management cluster, so that Deployments of other
// providers and their webhooks run there.
//
// Does: creates the network before the API server starts, which listens on the host's address in it ([Reserve]), internal or
// with a way out as the operator says, and deletes it with its container to create it again where that was changed; then
// creates the container, joins it with kubeadm, publishes the endpoint of the API server for Pods, and creates what is
// missing again for as long as the management cluster runs ([Keep]).
//
//	no container      delete the Node of an earlier one, create the container
//	another image     delete both
//	not joined yet    create a bootstrap token, run kubeadm join
//	join failed       delete the container, to begin again
//	joined            nothing
//	not Ready         after ten minutes, delete the container, to begin again
//
// Owns: the network and the container that the labels of object slipway-system/management-node stand for, Node
// management-node, EndpointSlice default/kubernetes, and what package addons puts into the cluster.
//
// Never: starts the API server (internal/plane), knows Pods.
//
// Read first: [Reserve], [Keep], decide.go.
package managementnode
