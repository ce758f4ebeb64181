// Package secrets is the certificates and the kubeconfig of a control plane.
//
// Does: says which Secrets to generate, to own and to write ([Input.Decide], [Input.DecideKubeconfig]), and does so ([Input.Act]).
//
// Owns: the Secrets <cluster>-{ca,etcd,proxy,sa,kubeconfig}, but those of a user.
//
// Never: generates an authority once there is a Machine: it would not be the one that everything was signed with.
//
// Read first: [Input.Decide].
package secrets
