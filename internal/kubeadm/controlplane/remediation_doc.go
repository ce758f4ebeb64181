// Package remediation selects the unhealthy control plane Machine to replace. Of the Machines for which a health
// check requests a replacement ([Machine.Asks]), [planRemediation] selects one, and returns for each Machine whether it is
// replaced, has to wait, or cannot be replaced. Retries are counted in a [remediationRecord], which is stored on the
// KubeadmControlPlane until the replacement exists, and on the replacement afterwards. The first row that applies
// determines the result:
//
//	condition                                        OwnerRemediated
//	another Machine is being deleted or created,     RemediationDeferred
//	unless it waits for this replacement
//	the period between two retries is not over       RemediationDeferred
//	spec.remediation.maxRetry is reached             CannotBeRemediated
//	the only Machine, cluster not initialized        MachineDeleting: the next one initializes
//	the only Machine                                 CannotBeRemediated
//	no other Machine has all components healthy      RemediationDeferred
//	etcd would lose its quorum                       RemediationDeferred
//	otherwise                                        MachineDeleting
//
// A Machine whose bootstrap has failed is also replaced if a health check requests the replacement of another
// Machine. Otherwise the other one would wait for it, and no Machine can join while an etcd member is lost.
//
// The order of selection is: a Machine that a user marked, one without a Node, one whose etcd member is unhealthy,
// one whose components are unhealthy, and the oldest. Start reading at [remediationInput] and [planRemediation].
package controlplane
