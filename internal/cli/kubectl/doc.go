// Package kubectl is the verb "kubectl": kubectl itself.
//
// Does: runs k8s.io/kubectl in this process with the arguments as they are, plugins included, after naming the
// management cluster's kubeconfig in KUBECONFIG. So these are asked, in this order: the kubeconfig that --kubeconfig
// names; that of the data directory (or of --data-dir, the one flag that is taken out of the arguments), if it exists;
// kubectl's usual places.
//
// Never: changes what kubectl does or prints.
//
// Read first: Command.
package kubectl
