// Package managementnode runs a container as the only node of an embedded management cluster, for `slipway up --node`,
// so that the Deployments and webhooks of other providers can run there. [Reserve] creates the network before the API
// server starts, because the API server listens on the host's address in that network. Access to the internet from the
// network is configurable; if the setting changes, the network and the container are recreated. [Supervisor.Run] then
// creates the container, joins it with kubeadm, publishes the endpoint of the API server for Pods, and recreates
// missing objects while the management cluster runs. The package manages the network and the container that are
// labelled for the object slipway-system/management-node, Node management-node, EndpointSlice default/kubernetes and
// the objects that package addons applies to the cluster. Package internal/controlplane starts the API server itself.
//
// The first matching row applies (decide.go):
//
//	container foreign or being removed   wait
//	no container                         delete a leftover Node, create the container
//	another version                      delete the container
//	container stopped                    start it
//	not joined yet                       create a bootstrap token, run kubeadm join
//	join runs, or cannot run             wait
//	join failed or interrupted           delete the container and start over
//	joined, Node deleted                 delete the container and start over
//	joined, Node Ready                   nothing
//	joined, Node not Ready               after 10 minutes, doubled each time, delete the container and start over
package managementnode
