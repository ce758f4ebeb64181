// Package addons updates the objects that kubeadm creates in a workload cluster to the version and configuration of the
// KubeadmControlPlane. [Read] reads the objects, [ChangesBeforeJoin] returns the changes required before a Machine with
// another version or configuration joins, [PlanUpgrades] returns the changes once all Machines are up to date, and
// [Apply] applies a change. The KubeadmControlPlane controller decides when. Manual changes of other fields of these
// objects are preserved. The ConfigMap kubelet-config has no version and is not changed, because kubeadm reads it as it
// is. Addons that the annotations of the KubeadmControlPlane exclude are skipped, and kube-proxy and CoreDNS are never
// created.
//
// The objects, and the fields that are changed:
//
//	before a Machine joins                        after all Machines are up to date
//	  roles that kubeadm needs  create missing      DaemonSet kube-proxy     image
//	  ConfigMap kubeadm-config  version, images,    ConfigMap kubeadm-config image of CoreDNS
//	                            feature gates,      ConfigMap coredns        Corefile migrated, with a backup
//	                            components, etcd,   ClusterRole, Deployment of CoreDNS
//	                            certificates
package addons
