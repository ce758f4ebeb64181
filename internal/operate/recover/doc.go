// Package rebuild recovers a control plane whose etcd has lost its quorum, on behalf of a user. It requests a survey of
// the remaining members from the control plane, selects the member with the most recent data, and reports which data
// would be preserved, lost, and which is unknown ([Order.Prepare]). It requests the recovery and follows it until the
// control plane is restored ([Order.Run]). The controllers access the nodes and change the Machines.
package recover
