// Package remediation decides which unhealthy control plane Machine is replaced now.
//
// Does: of the Machines for which a health check asks ([Machine.Asks]) chooses one, and says of each why it is replaced, has to wait, or
// cannot be replaced ([Decide]). Keeps count of retries in [Record], which is on the KubeadmControlPlane while a Machine is deleted and
// its replacement does not exist, and on the replacement afterwards.
//
//	the first found decides                          OwnerRemediated
//	another Machine is deleted or being created,     RemediationDeferred
//	unless it is held until this one is replaced
//	replaced as often as spec.remediation allows     CannotBeRemediated
//	the time between two retries is not over         RemediationDeferred
//	not initialized, and the only Machine            MachineDeleting: the next one initializes
//	the only Machine                                 CannotBeRemediated
//	no other Machine has all components healthy      RemediationDeferred
//	etcd would lose its quorum                       RemediationDeferred
//	otherwise                                        MachineDeleting
//
// A Machine whose bootstrap has failed is replaced like one for which a health check asks, where a check asks for another one: as long as
// it is there the other one would wait, and no Machine can join while a member of etcd is lost.
//
// Chosen is, in this order, a Machine that a person marked, one without a Node, one whose member of etcd is not healthy, one whose
// components are not healthy, the oldest.
//
// Never: deletes a Machine, or declares one unhealthy.
//
// Read first: [Input], then [Decide].
package remediation
