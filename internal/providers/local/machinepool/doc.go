// Package machinepool is the controller of LocalMachinePools.
//
// Does: keeps one LocalMachine per replica of the MachinePool that owns the pool, says in spec and status
// what there is, and replaces machines:
//
//   - one whose machine was removed from the host is removed at once, and a new one made (its Machine says why);
//   - one that a health check found unhealthy, and whose replacement it asks for, is replaced at once;
//   - one that was made from another spec.template.backend or Kubernetes version is outdated. Outdated machines are
//     replaced one at a time: a new one is made first, and an outdated one goes when every new one is Ready, so that
//     there are never fewer machines than asked for;
//   - changed bootstrap data (a rotated token) and template metadata are for new machines only.
//
// When there are too many, those go first whose Machine or LocalMachine has the annotation
// cluster.x-k8s.io/delete-machine, then those that are not Ready, then outdated ones, then the oldest. A machine is
// removed by deleting its Machine, where there is one, so that its Node is drained. A Machine that someone
// else deletes is replaced.
//
// A pool that comes back from a backup waits until the machines of its list have been seen; the number in its
// status is the record that they were.
//
// Owns: LocalMachines with its annotation infrastructure.slipway.dev/pool; spec.providerID and spec.providerIDList;
// status of LocalMachinePools, with the conditions Deleting and Ready.
//
// Never: talks to the host, or waits for anything in a machine but its Ready condition.
//
// Read first: observe.go, then decide.go.
package machinepool
