// Package upgrade is what kubeadm leaves in a workload cluster, and how it follows a KubeadmControlPlane.
//
// Does: reads it ([Read]); says what has to change before a Machine of another version or configuration joins ([Before]), and once
// all Machines are up to date ([After]); carries a change out ([Apply]).
//
//	before a Machine joins                        after all Machines are up to date
//	  roles that kubeadm needs  create missing      DaemonSet kube-proxy    image
//	  ConfigMap kubeadm-config  version, images,    ConfigMap kubeadm-config image of CoreDNS
//	                            feature gates,      ConfigMap coredns       Corefile migrated, with a backup
//	                            components, etcd,   ClusterRole, Deployment of CoreDNS
//	                            certificates
//
// The ConfigMap kubelet-config has no version and stays as it is: kubeadm reads it as it was written. What was changed by hand in other
// fields of these objects stays, too.
//
// Owns: in workload clusters: the ClusterConfiguration in ConfigMap kubeadm-config; the images of kube-proxy and CoreDNS; the Corefile
// while CoreDNS gets another version.
//
// Never: decides when; changes what a KubeadmControlPlane has an annotation to skip; creates kube-proxy or CoreDNS where they are not.
//
// Read first: [Before], [After].
package upgrade
