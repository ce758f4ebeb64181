// Package recovering decides how a control plane recovers from the loss of its etcd quorum. It determines whether the
// quorum is lost and which members are lost or left ([Input.Loss]); while the API does not respond, the members are
// surveyed through their infrastructure. For a recovery request (see package recovery), it plans the next step
// ([Input.Decide]) and reports the progress ([Input.Verdict]). The first condition that is not met determines the
// step:
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
// to refuse, and the staged data is restored instead of rebuilding the member.
//
// The other machines are deleted before the survivor is rebuilt. Otherwise two members that come back with the old
// membership could form a quorum next to the survivor's. The user chooses the survivor, and after the recovery the
// control plane creates the missing Machines as usual. Start reading at [recoveryInput] and [recoveryInput.Decide].
package controlplane
