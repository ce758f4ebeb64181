// Package recovering decides how a control plane recovers whose etcd has lost its quorum.
//
// Does: says whether the quorum is lost, who is, and who is left ([Input.Loss]); while the API does not answer, it has the members surveyed
// for that. Of a request for a recovery (package recovery), says what
// comes next ([Input.Decide]) and how far it is ([Input.Verdict]):
//
//	the first that is not so                                    what is done
//	the request can be read, etcd runs on the Machines          refuse
//	it names a survivor                                         survey the members
//	the survivor is a Machine with a Node that stays            refuse
//	the survivor's infrastructure answers: it knows no leader   survey it, refuse
//	the quorum is lost, or the request insists                  refuse
//	the request is accepted, with who is given up               accept
//	the machines of the others are gone, or it insists          delete their Machines, without drain or hook
//	etcd of the survivor is rebuilt                             order it
//	the API answers, with a quorum without the others           wait
//	the Nodes of the others are gone                            delete them
//	the condition says that it is done                          say so, then remove the request
//
// Of a request that names a snapshot, the infrastructure stages that instead of a survey, and a quorum is no reason to refuse it; afterwards it
// restores what was staged instead of a rebuild.
//
// The machines of the others are gone before the survivor is rebuilt: two members that come back with the old membership would be
// a quorum of their own, beside the survivor's.
//
// Never: chooses the survivor; reaches a node; creates the Machines that are missing then (the control plane does, as ever).
//
// Read first: [Input], then [Input.Decide].
package recovering
