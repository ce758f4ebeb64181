// Package recovery defines the protocol for recovering an etcd cluster without quorum, between the
// KubeadmControlPlane and the infrastructure provider of its Machines. Without quorum the API of the workload cluster
// does not respond, so members are only reachable through the infrastructure.
//
// The package reads and writes the request on a KubeadmControlPlane ([RecoveryRequest]), the order to an infrastructure
// machine ([EtcdOrder]) and its result ([Report]). All three are annotations, so their content is as trustworthy as the
// users who can write these objects. It also contains the scripts that an infrastructure provider or an administrator
// runs on a node. They read the state of an etcd member ([Survey]), make the member the only one of its cluster
// ([Rebuild]), or restore a snapshot ([Stage], [Restore]).
//
//	KubeadmControlPlane          infrastructure machine            node
//	  Request ──────────────────► Order Survey ──────────────────► metrics of etcd
//	          ◄────────────────── Report: leader, revision, index
//	  survivor chosen, others deleted
//	          ──────────────────► Order Rebuild ─────────────────► --force-new-cluster, once
//	          ◄────────────────── Report: done
//
// If the request names a snapshot, Stage runs before the other Machines are deleted, and Restore replaces Rebuild.
// The controller of the control plane chooses the survivor and the time of each step; this package runs nothing.
package recovery
