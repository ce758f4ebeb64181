// Package secrets manages the certificates and the kubeconfig of a control plane, in the Secrets
// <cluster>-{ca,etcd,proxy,sa,kubeconfig}. [Input.Decide] and [Input.DecideKubeconfig] select the Secrets to
// generate, adopt and write, and [Input.Act] writes them. Secrets provided by users are not changed. A CA is only
// generated before the first Machine exists, because existing Machines would not trust a new one.
package controlplane
