package controlplane

import (
	"slices"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/addons"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// report computes the status and the events of a KubeadmControlPlane after its plan was executed; the driver of package
// reconciler writes them. The fields are the contract of control plane providers in Cluster API: the Cluster and
// topology controllers read them.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	j := conditionInput{snapshot: s, machines: s.observedMachines(), plan: p, out: out}
	n := j.machines.Count()
	status := controlplanev1.KubeadmControlPlaneStatus{
		Conditions: conditions.Evaluate(j, reconciler.EvaluateOptionsFor(s.ControlPlane, s.Now)),
		Replicas:   &n.Replicas, ReadyReplicas: &n.Ready, AvailableReplicas: &n.Available, UpToDateReplicas: &n.UpToDate,
		Versions: j.machines.Versions(), ObservedGeneration: s.ControlPlane.Status.ObservedGeneration,
		Initialization: s.ControlPlane.Status.Initialization, LastRemediation: lastRemediation(s.ControlPlane, s.Machines),
	}
	if len(status.Versions) > 0 {
		status.Version = status.Versions[0].Version
	}
	if s.Cluster != nil {
		status.Selector = clusterv1.ClusterNameLabel + "=" + s.Cluster.Name + "," + clusterv1.MachineControlPlaneLabel
	}
	if s.isInitialized() {
		status.Initialization.ControlPlaneInitialized = new(true)
	}
	if out.Err == nil && s.Cluster != nil && !s.isRestored() {
		status.ObservedGeneration = s.ControlPlane.Generation
	}
	status.Deprecated = &controlplanev1.KubeadmControlPlaneDeprecatedStatus{V1Beta1: legacyStatus(j, status.Conditions)}
	return reconciler.Report{Status: status, Events: events(j)}
}

// changesFor is the time that a Machine may take to join or to be deleted before a warning is reported for the
// blocked changes.
const changesFor = 10 * time.Minute

// isChanging reports whether a Machine is joining or being deleted. No warning is needed while other changes wait for
// it.
func (j conditionInput) isChanging() bool {
	return len(j.Created) > 0 || slices.ContainsFunc(j.Members, func(m memberMachine) bool {
		switch {
		case m.Deleted:
			return m.DeletionTimestamp.IsZero() || j.Now.Sub(m.DeletionTimestamp.Time) < changesFor
		case j.Now.Sub(m.CreationTimestamp.Time) >= changesFor, m.Failed:
			return false
		}
		return m.Unhealthy != ""
	})
}

// events returns the events for the executed actions, the failed action and the waits.
func events(j conditionInput) []reconciler.Event {
	var list []reconciler.Event
	for _, do := range j.out.Done {
		switch a := do.(type) {
		case adopt:
			list = append(list, reconciler.Normal("SuccessfulAdopt", "Adopted Machine %s", a.Machine))
		case createMachine:
			list = append(list, reconciler.Normal("SuccessfulCreate", "Created Machine %s: %s", a.Name, a.Why))
		case removeMember:
			list = append(list, reconciler.Normal("EtcdMemberRemoved", "Removed etcd member %s: %s", a.Name, a.Why))
		case addons.Change:
			list = append(list, reconciler.Normal("WorkloadChanged", "Wrote %s of the workload cluster: %s", a.Object, a.Why))
		case moveLeader:
			list = append(list, reconciler.Normal("EtcdLeaderMoved", "Moved the etcd leader from Node %s to Node %s", a.From, a.Node))
		}
	}
	if a, failed := j.out.Failed.(createMachine); failed {
		list = append(list, reconciler.Warning("FailedCreate", "%s", machines.FailureText("Machine could not be created", j.out, a.Name)))
	}
	for _, w := range j.plan.Waits {
		if w.Reason == waitForPreflight && !j.isChanging() {
			list = append(list, reconciler.Warning("ControlPlaneUnhealthy", "Waiting for the control plane to pass preflight checks: %s", w.Message))
		}
	}
	list = append(list, adoptionEvents(j.ControlPlane, j.Adoptable)...)
	return append(append(list, updateEvents(j.out)...), machines.Events(j.out)...)
}
