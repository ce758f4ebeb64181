// Package cluster implements the commands for workload clusters, and encryption, logs and kubectl, which act on the
// management cluster or its host. Most commands parse their flags, connect to the management cluster (package
// management), call the package that does the work, and print the result. "create cluster" has the same effect as
// `kubectl apply` of its printed manifest, and "upgrade cluster" as a change of spec.topology.version. The files are
// named after the commands; start with create_cluster.go.
//
// The commands, and the packages that do their work:
//
//	create cluster     operate/create: applies the manifest of a ClusterClass (clusterctl/template), or prints it
//	delete cluster     operate/create: deletes the Cluster; the controllers delete its objects
//	describe cluster   operate/describe: prints the objects as a tree with their conditions
//	generate cluster   clusterctl/template: prints a manifest from the template of an infrastructure provider
//	get classes        clusterctl/template: lists the ClusterClasses, including the ones that are part of Slipway
//	get clusters       fleet: lists clusters with their versions, Machines and the cause of a problem
//	get machines       fleet: lists the Machines of all clusters
//	get nodes          fleet: lists the Nodes of all clusters from the status of their Machines
//	get kubeconfig     operate/kubeconfig: prints or merges a kubeconfig, or issues credentials for one user
//	upgrade cluster    operate/upgrade: shows the steps of the upgrade, and writes the version
//	rollout            operate/upgrade: restarts, pauses, resumes and follows a rollout
//	wait cluster       operate/progress: waits until all nodes are Ready, as create and upgrade do
//	rotate             operate/rotate, operate/encryptionkeys: replace the CA or the encryption keys of a cluster
//	encryption rotate  controlplane/secretencryption: replaces the encryption key of the management cluster
//	logs               reads log files and calls Docker, so that it works without the API server
//	kubectl            runs k8s.io/kubectl in this process
//
// The kubectl command passes its arguments on unchanged, including plugins, after setting KUBECONFIG. It selects the
// kubeconfig in this order:
//
//	the --kubeconfig flag
//	the kubeconfig of the data directory, if it exists; --data-dir, the only flag that is removed, selects the directory
//	the default locations of kubectl
//
// "get kubeconfig --merge" never modifies the kubeconfig of a management cluster, because commands use it to find the
// cluster.
package cluster
