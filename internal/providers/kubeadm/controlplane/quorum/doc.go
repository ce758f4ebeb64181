// Package quorum attributes the members of etcd to Machines, and computes what may be removed without losing the quorum.
//
// Does: matches members to the Machines of a control plane by all that is known of both ([Match]), evaluates the health of each member
// as healthy, unhealthy or unknown, and computes whether the quorum stays when a member, or the Machine that runs it, is removed
// ([Members.AllowsRemoval], [Matching.Obstacle]).
//
//	what names a member of a Machine
//	status.nodeRef is the name of the member
//	the Node of that name has a provider ID of the Machine
//	an address of the Machine is in a peer URL of the member
//	a host name of the Machine, or its own name, is the name of the member
//	no other member and no other Machine is left
//
// Evidence counts only if it names one member and one Machine. If the evidence contradicts itself, no member is attributed, and
// the Machine may run each of those that are named.
//
//	class        meaning                                                             removed
//	OfMachine    it runs on a Machine                                                with its Machine
//	Joining      no Machine runs it, and a Machine is joining                        no
//	Disputed     the evidence contradicts itself                                     no
//	Foreign      no Machine runs it, its Node is ready and has a static Pod of etcd  no
//	Orphan       no Machine runs it, and its Node does not run it either             when the quorum stays
//
//	voters          1  2  3  4  5  6  7
//	quorum          1  2  2  3  3  4  4
//	may be lost     0  0  1  1  2  2  3
//
// Learners have no vote and count nowhere. A member of unknown health is no reason to report a lost quorum, and is not counted on
// when another member is to be removed.
//
// Never: decides which member goes, or reads one.
//
// Read first: [Match], then [Members].
package quorum
