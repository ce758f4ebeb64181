// Package workload observes the workload cluster of a KubeadmControlPlane and evaluates its health, for the
// KubeadmControlPlane controller. [Reader.Read] reads the Nodes, the static Pods of the control plane, kubeadm's
// configuration, the etcd members and the expiration of the API server certificates together; for each part that cannot
// be read, the [State] contains the reason. The API servers and the etcd members (static Pods kube-apiserver-<node> and
// etcd-<node>) are reached through forwarded ports ([ExpiryReader], [EtcdConnections]), with the CA and the etcd CA of
// the cluster. The package computes from the state which etcd member runs on which Machine ([MatchMembers]), which
// members may be removed without losing the quorum ([EtcdMembers.AllowsRemoval], [MemberMatching.Obstacle]), and the
// health conditions of the Machines and the control plane. It changes nothing, and external etcd clusters are not read.
// Start reading at [State], [MatchMembers] and [MachineConditions].
//
// The evidence that a member runs on a Machine. Each kind only counts if it identifies one member and one Machine. If
// the evidence is contradictory, no member is assigned, and each of the identified members may run on the Machine.
//
//	status.nodeRef is the name of the member
//	the Node with the member's name has a provider ID of the Machine
//	an address of the Machine is in a peer URL of the member
//	a host name of the Machine, or its own name, is the name of the member
//	no other member and no other Machine remains
//
// The evidence determines the class of a member, and the class determines when the member is removed:
//
//	class       meaning                                                             removed
//	OfMachine   it runs on a Machine                                                with its Machine
//	Joining     no Machine runs it, and a Machine is joining                        no
//	Disputed    the evidence is contradictory                                       no
//	Foreign     no Machine runs it, its Node is ready and has a static Pod of etcd  no
//	Orphan      no Machine runs it, and its Node does not run it either             if the quorum remains
//
// The quorum of etcd. Learners do not vote and are not counted. A member of unknown health does not cause a lost quorum
// to be reported, but it is not counted as healthy when another member is to be removed.
//
//	voters            1  2  3  4  5  6  7
//	quorum            1  2  2  3  3  4  4
//	fault tolerance   0  0  1  1  2  2  3
//
// The conditions of a Machine ([MachineConditions]), its readiness gates ([ReadinessGates]), and the conditions that
// must be True before the number of Machines changes ([UnhealthyReason]). The methods of [ControlPlaneHealth] aggregate
// them to the conditions of the control plane. The conditions about etcd only exist if it runs on the Machines.
//
//	NodeKubeadmLabelsAndTaintsSet     the Node has the label of a control plane (a gate only)
//	APIServerPodHealthy, ControllerManagerPodHealthy, SchedulerPodHealthy, EtcdPodHealthy
//	                                  the static Pod runs
//	EtcdMemberHealthy                 the member is healthy and consistent with the others
//
// Conditions whose state cannot be read remain unchanged until the connection has been down for longer than the grace
// period. After that they are Unknown with the reason ConnectionDown.
package workload
