// Package managerproc keeps the manager of `slipway up` in a process of its own, beside the one of etcd and the API
// server.
//
// Does: starts the manager, restarts it with backoff when it ends, kills it when it uses more memory than it may, and
// reports how it ended and what it was working on at that moment. An object that was being reconciled at the end of two
// crashes is set aside for a while, so that the manager can continue with the others. A workload cluster of which an answer was
// being decoded at the end of one crash is not connected for a while, and no object is blamed for such a crash. The manager's
// side of this is here, too: the record of its work, and its report to the process that started it.
//
// Owns: the manager's process. The record is memory that both processes share and no file.
//
// Never: knows controllers, or writes to the API; [Config] has functions for what to do with what was learned.
//
// Read first: [Run], then [Record].
package managerproc
