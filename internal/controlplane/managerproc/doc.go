// Package managerproc runs the manager of `slipway up` in a separate process. It starts the manager, restarts
// it with backoff when it exits, kills it when it exceeds its memory limit, and reports how it exited and
// what it was working on ([Run]). An object that was being reconciled during two crashes is quarantined for a
// while, so that the manager can continue with other objects. A workload cluster whose response was being
// decoded during one crash is not connected for a while, and objects are not counted for such a crash. The
// package also contains the manager's side ([Attach]): the record of its work in shared memory (record.go), and
// its reports to the parent process. It does not depend on controllers or on the API; callers handle the
// results through functions in [Config].
package managerproc
