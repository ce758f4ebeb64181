// Package quorum maps etcd members to Machines, and computes which members may be removed without losing the quorum.
// [QuorumMatch] combines all evidence about members and control plane Machines, and evaluates the health of each member as
// healthy, unhealthy or unknown. [Members.AllowsRemoval] and [Matching.Obstacle] compute whether the quorum remains
// if a member, or the Machine that runs it, is removed.
//
//	evidence that a member runs on a Machine
//	status.nodeRef is the name of the member
//	the Node with the member's name has a provider ID of the Machine
//	an address of the Machine is in a peer URL of the member
//	a host name of the Machine, or its own name, is the name of the member
//	no other member and no other Machine remains
//
// Evidence only counts if it identifies one member and one Machine. If the evidence is contradictory, no member is
// assigned, and each of the identified members may run on the Machine.
//
//	class        meaning                                                             removed
//	ofMachine    it runs on a Machine                                                with its Machine
//	Joining      no Machine runs it, and a Machine is joining                        no
//	Disputed     the evidence is contradictory                                       no
//	Foreign      no Machine runs it, its Node is ready and has a static Pod of etcd  no
//	Orphan       no Machine runs it, and its Node does not run it either             if the quorum remains
//
//	voters            1  2  3  4  5  6  7
//	quorum            1  2  2  3  3  4  4
//	fault tolerance   0  0  1  1  2  2  3
//
// Learners do not vote and are not counted. A member of unknown health does not cause a lost quorum to be reported,
// but it is not counted as healthy when another member is to be removed. Start reading at [QuorumMatch] and [QuorumMembers].
package workload
