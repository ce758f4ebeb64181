// Package machinepool is the controller of LocalMachinePools. It manages one LocalMachine per replica of the
// MachinePool that owns the pool, reports them in spec and status, and replaces machines:
//
//   - A machine that was removed from the host is deleted and replaced immediately; its Machine reports the reason.
//   - A machine that a health check marks for remediation is replaced immediately.
//   - A machine created from another spec.template.backend or Kubernetes version is outdated. Outdated machines are
//     replaced one at a time: a new machine is created first, and an outdated one is deleted when every new one is
//     ready, so that there are never fewer machines than desired.
//   - Changes of the bootstrap data (such as a rotated token) and of template metadata apply to new machines only.
//
// Surplus machines are deleted in this order: machines whose Machine or LocalMachine has the annotation
// cluster.x-k8s.io/delete-machine, machines that are not ready, outdated machines, the oldest. If there is a Machine,
// it is deleted instead of the LocalMachine, so that its Node is drained. A Machine that another client deletes is
// replaced.
//
// A pool that is restored from a backup waits until all machines in its list have been observed; from then on, its
// status contains the number of replicas.
//
// The controller sets spec.providerID and spec.providerIDList. It does not access the host. Package local adds it to
// the manager ([Add]).
package machinepool
