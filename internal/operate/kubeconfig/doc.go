// Package kubeconfig reads the kubeconfig of a workload cluster from the Secret `<cluster>-kubeconfig` of the control
// plane provider. If the Secret does not exist, the error explains why. See [ReadKubeconfig].
package kubeconfig
