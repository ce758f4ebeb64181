// Package recovery defines the protocol for recovering an etcd cluster without quorum, between the KubeadmControlPlane
// and the infrastructure provider of its Machines. Without quorum the API of the workload cluster does not respond, so
// members are only reachable through the infrastructure. The package reads and writes the request on a
// KubeadmControlPlane ([RecoveryRequest]), the order to an infrastructure machine ([EtcdOrder]) and its result
// ([Report]). All three are annotations, so their content is as trustworthy as the users who can write these objects.
// The package also contains the scripts that an infrastructure provider or an administrator runs on a node, but it runs
// nothing itself. The controller of the control plane chooses the survivor and the time of each step. Package
// kubeadm/controlplane, `slipway recover controlplane` and the local provider use the package.
//
//	KubeadmControlPlane          infrastructure machine            node
//	  RecoveryRequest ──────────► EtcdOrder Survey ──────────────► metrics of etcd
//	          ◄────────────────── Report: leader, revision, index
//	  survivor chosen, others deleted
//	          ──────────────────► EtcdOrder Rebuild ─────────────► --force-new-cluster, once
//	          ◄────────────────── Report: done
//
// If the request names a snapshot, Stage runs before the other Machines are deleted, and Restore replaces Rebuild. Each
// step has a script:
//
//	Survey    SurveyProgram   reads the state of an etcd member
//	Rebuild   Program         makes the member the only one of its cluster
//	Stage     StageProgram    prepares a data directory from a snapshot
//	Restore   Program         replaces the member's data with the staged data
package recovery
