// Package kubectl implements the kubectl command. It runs k8s.io/kubectl in this process with unchanged arguments,
// including plugins, after setting KUBECONFIG to the kubeconfig of the management cluster. The kubeconfig is selected
// in this order: the --kubeconfig flag; the kubeconfig of the data directory, if it exists (--data-dir, the only flag
// that is removed from the arguments, selects the directory); the default locations of kubectl.
package cluster
