// Package controlplane implements the KubeadmControlPlane controller. It creates the certificates and the kubeconfig, a
// first Machine whose KubeadmConfig initializes the cluster, and then the joining Machines one after the other. It
// replaces outdated and unhealthy Machines, updates them in place if an extension can, deletes surplus ones, and
// recovers a control plane that has lost its etcd quorum. At most one Machine is created or deleted at a time, and the
// next one waits until all components of the other Machines are healthy. The etcd member of a deleted Machine is
// removed while its kubelet still runs, and no action of the controller lowers etcd below its quorum (see package
// workload). Changes that do not require a replacement are propagated to Machines in place. Package addons updates the
// objects that kubeadm created in the workload cluster: its configuration and roles before a Machine joins, and
// kube-proxy and CoreDNS once all Machines are up to date. Bootstrap data and the lock of the first node belong to
// package bootstrap, a MachineHealthCheck declares Machines unhealthy, and the Machine controller deletes the
// infrastructure. Start reading at [snapshot], [decide] and change.go. Package manager adds the controller.
//
// A reconciliation observes the objects on the left and takes the first step that is due:
//
//	                      ┌─ certificates, kubeconfig
//	KubeadmControlPlane ──┤
//	Machines              ├─ the quorum is lost: recover
//	KubeadmConfigs        ├─ a Machine is being deleted: transfer leadership, remove its member, remove the hook
//	infrastructure        ├─ etcd members without a Machine: remove
//	workload cluster      ├─ remediate ──────────────┐
//	etcd members          ├─ roll out ─► preflight ──┼─► create, update or delete one Machine
//	                      └─ scale ────► preflight ──┘
//
// The controller writes the following fields and objects. On Machines, KubeadmConfigs and infrastructure machines, the
// field manager capi-kubeadmcontrolplane owns the fields. An external etcd is never changed.
//
//	KubeadmControlPlane                                   finalizer, annotation remediation-in-progress, status
//	control plane Machines, their KubeadmConfigs and      owner reference, labels, annotations, spec
//	infrastructure machines
//	control plane Machines                                conditions UpToDate, OwnerRemediated, and of package workload
//	Secrets <cluster>-{ca,etcd,proxy,sa,kubeconfig}       content and owner, unless a user provided them
//	workload cluster                                      the members of etcd, and the objects of package addons
//
// A Machine is replaced for one of these causes (rollout.go). Fields that are propagated in place (metadata, timeouts,
// gates, taints) are no cause.
//
//	Version             its version differs
//	Infrastructure      it was cloned from another template
//	KubeadmConfig       its configuration for init or join differs, except for CoreDNS
//	RolloutAfter        spec.rollout.after has passed, and it was created before that time
//	CertificateExpiry   its certificates expire within spec.rollout.before.certificatesExpiryDays
//
// In-place updates are an alternative to the replacement (inplace_decide.go). Only one Machine is updated at a time.
// The Machine controller calls UpdateMachine and ends the update.
//
//	a Machine would be deleted because it is outdated
//	   │ eligible, and the control plane passed its preflight checks
//	   ▼
//	call the extension ─ makes all changes ─► mark the Machine ─► write its objects ─► pending hook ─► wait for its end
//	   ├─ leaves some changes, or there is no extension ─► the Machine is deleted and replaced
//	   └─ no response ─► neither; the condition RollingOut names the handler that did not respond
//
// Of the Machines for which a health check requests a replacement, one is selected: a Machine that a user marked, one
// without a Node, one whose etcd member is unhealthy, one whose components are unhealthy, or the oldest. A Machine
// whose bootstrap has failed is also replaced if a health check requests the replacement of another one, because the
// other one would wait for it. The first row that applies determines the result (remediation.go). Retries are counted
// in a record on the KubeadmControlPlane until the replacement exists, and on the replacement afterwards.
//
//	condition                                        OwnerRemediated
//	another Machine is being deleted or created,     RemediationDeferred
//	unless it waits for this replacement
//	the period between two retries is not over       RemediationDeferred
//	spec.remediation.maxRetry is reached             CannotBeRemediated
//	the only Machine, cluster not initialized        MachineDeleting: the next one initializes
//	the only Machine                                 CannotBeRemediated
//	no other Machine has all components healthy      RemediationDeferred
//	the etcd members are unknown                     RemediationDeferred
//	etcd would lose its quorum                       RemediationDeferred
//	otherwise                                        MachineDeleting
//
// A pre-terminate hook blocks the deletion of a Machine's infrastructure until its etcd member is removed, or the
// Machine cannot have one (hooks.go):
//
//	the member of the Machine is known                      remove it if the quorum permits, then the hook
//	it is unknown which member runs on the Machine          wait
//	the Machine cannot have a member, etcd is not managed,
//	or no other Machine is left                             remove the hook
//
// A recovery from the loss of the quorum is requested by an annotation (see package recovery). While the API does not
// respond, the members are surveyed through their infrastructure. The first condition that is not met determines the
// step (recovery_stage.go):
//
//	condition                                                   step
//	the request is valid, and etcd runs on the Machines         refuse
//	the request has a survivor                                  survey the members
//	the survivor is a Machine with a Node, not being deleted    refuse
//	the survivor's infrastructure reports no leader             survey it, refuse
//	the quorum is lost, or the request has force                refuse
//	the request is accepted, with the discarded members         accept
//	the other machines are deleted, or the request has force    delete their Machines, without drain or hook
//	etcd of the survivor is rebuilt                             order the rebuild
//	the API responds, with quorum without the others            wait
//	the Nodes of the others are deleted                         delete them
//	the condition Recovered is True                             set it, then remove the request
//
// If the request names a snapshot, the survivor's infrastructure stages it instead of a survey, a quorum is no reason
// to refuse, and the staged data is restored instead of rebuilding the member. The other machines are deleted before
// the survivor is rebuilt. Otherwise two members that come back with the old membership could form a quorum next to the
// survivor's. After the recovery, the control plane creates the missing Machines as usual.
package controlplane
