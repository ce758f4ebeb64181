package controlplane

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

const (
	// soon is the delay before reading objects that are not watched until they exist, and the interval for reading a
	// workload cluster with a new Machine. A Machine is new for newFor.
	soon, newFor = 2 * time.Second, 3 * time.Minute
	// verySoon is the interval while the first Node exists and kubeadm init is about to finish, because everything
	// else waits for it.
	verySoon = 500 * time.Millisecond
	// unhealthyInterval and healthyInterval are the intervals for reading the workload cluster: while a part of it is
	// unhealthy or changing, and otherwise.
	unhealthyInterval, healthyInterval = 10 * time.Second, 60 * time.Second
	// preflightRecheck is the interval of failed preflight checks. deletionRecheck is the interval while a Machine is
	// being deleted.
	preflightRecheck, deletionRecheck = 15 * time.Second, 30 * time.Second
	// missingRecheck is the interval for checking for missing objects.
	missingRecheck = 30 * time.Second
)

// Reasons for waiting.
const (
	waitForCluster   = "WaitingForCluster"
	waitForTemplate  = "WaitingForTemplate"
	waitForPreflight = "PreflightCheckFailed"
	waitForName      = "InvalidNamingTemplate"
	waitForCache     = "WaitingForCache"
	waitForMachines  = "MachinesMissing"
	waitForFirst     = "WaitingForFirstMachine"
)

// decide returns the plan for a KubeadmControlPlane. The driver of package reconciler calls it in each reconciliation
// after observe, and again after each read that the plan requests. It must not have side effects. The rows are
// evaluated from top to bottom. A row above the first line, a wait for the infrastructure and a read end the plan.
// Below the first line, all other rows that apply are in the same plan:
//
//	no owner, or Cluster missing                      wait
//	some of its Machines lack the watch label         wait for the user
//	control plane Machines without a controller       adopt
//	no Machines, but a kubeconfig older than itself   wait for the user
//	---
//	Secret missing before the first Machine           create; after the first Machine, wait for the user
//	Secret lacks its owner                            restore the owner
//	---
//	infrastructure not provisioned, or no endpoint    wait
//	kubeconfig missing, outdated or past half-life    write
//	workload cluster not read recently                read
//	Machine differs from the template                 update in place, clones first
//	Machine's conditions differ from observed state   set
//	certificate expiry not recorded on KubeadmConfig  record
//	---
//	one change of the Machines, see change.go
func decide(s snapshot) reconciler.Plan {
	if !s.ControlPlane.DeletionTimestamp.IsZero() {
		return decideDeletion(s)
	}
	var p reconciler.Plan
	if s.Cluster == nil {
		p.WaitFor(waitForCluster, "Waiting for the Cluster to own this control plane").For(controlPlaneKind, s.ControlPlane.Name).ToChange("metadata.ownerReferences")
		return p
	}
	if !isJoined(s) {
		p.Do(labelWithCluster{Cluster: s.Cluster.Name})
	}
	if len(s.Hidden) > 0 {
		p.WaitFor(ownership.ReasonHidden, "Label %[2]s of this control plane is missing on %[1]s: "+
			"add it to the Machines, or remove it from the control plane", machines.NamesText(s.Hidden), clusterv1.WatchLabel).ForAll(machineKind, s.Hidden).UntilUserActs()
		p.RecheckIn(missingRecheck)
		return p
	}
	if decideAdoption(s.ControlPlane, s.Adoptable, &p) {
		return p
	}
	if s.isRestored() {
		p.WaitFor(waitForMachines, "The kubeconfig of Cluster %s is older than this control plane, which has no Machines: "+
			"restore the Machines, or delete Secret %s to create a new cluster", s.Cluster.Name, secrets.Admin.SecretName(s.Cluster.Name)).
			For("Secret", secrets.Admin.SecretName(s.Cluster.Name)).UntilUserActs()
		p.RecheckIn(missingRecheck)
		return p
	}
	s.decideSecrets(&p)
	if !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false) || !s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		p.WaitFor(clusterv1.WaitingForClusterInfrastructureReadyReason,
			"Waiting for the infrastructure of Cluster %s to be provisioned and its control plane endpoint to be set", s.Cluster.Name).
			For(clusterKind, s.Cluster.Name).ToChange("status.initialization.infrastructureProvisioned")
		return p
	}
	s.decideKubeconfig(&p)
	if s.isReadDue() {
		p.Reads = []reconciler.ReadRequest{readWorkload{}}
		return p
	}
	decideMachines(s, &p)
	if !s.Fresh && len(s.Machines) > 0 && changesMachines(p) && s.needsRead() {
		p.Reads = []reconciler.ReadRequest{readWorkload{}} // decide from fresh state and not from cached state
	}
	return p
}

// decideMachines propagates changes in place, sets conditions, and then plans at most one change of the set of
// Machines.
func decideMachines(s snapshot, p *reconciler.Plan) {
	updates := append(s.machinesState().Propagation(), s.setConditions()...)
	p.Do(clone.Templates{s.Infra}.OwnedBy(s.Cluster)...)
	p.Do(updates...)
	p.Do(expiryNotes(s.Members, s.Workload.Expiry, s.Now)...)
	p.RecheckIn(s.Remediation.Recheck)
	if next := nextTime(s.ControlPlane, s.Members, s.Now); !next.IsZero() {
		p.RecheckIn(next.Sub(s.Now))
	}
	if len(s.Created) > 0 {
		p.WaitFor(waitForCache, "Waiting for the cache to show %s", machines.NamesText(s.Created)).ForAll(machineKind, s.Created).ToChange("")
		p.RecheckIn(machines.PendingRecheck)
	} else {
		decideChange(s.withWrites(updates), p)
	}
	p.RecheckIn(s.readInterval())
}

// isJoined reports whether the control plane has the label of its Cluster.
func isJoined(s snapshot) bool {
	return s.ControlPlane.Labels[clusterv1.ClusterNameLabel] == s.Cluster.Name
}

// isReadDue reports whether the workload cluster is readable and its cached state is due for a refresh.
func (s snapshot) isReadDue() bool {
	if s.Fresh || len(s.Machines) == 0 || s.Secrets[secrets.Admin] == nil || !s.needsRead() {
		return false
	}
	return s.Workload.IsBehind(s.Connection) || s.hasNewNode() || s.hasLostMachine() || !s.Now.Before(s.Workload.At.Add(s.readInterval()))
}

func (s snapshot) hasNewNode() bool {
	return slices.ContainsFunc(s.Machines, func(m machines.OwnedMachine) bool {
		node := m.Status.NodeRef.Name
		return node != "" && s.isInitialized() && s.Workload.Problem == "" && !s.Workload.ReadNodes[node]
	})
}

// hasLostMachine reports whether the infrastructure of a Machine has failed since the workload cluster was read.
func (s snapshot) hasLostMachine() bool {
	return slices.ContainsFunc(s.Machines, func(m machines.OwnedMachine) bool {
		c := condition.Set(m.Status.Conditions).Get(clusterv1.InfrastructureReadyCondition)
		return c != nil && c.Status == "False" && m.Status.NodeRef.IsDefined() && c.LastTransitionTime.After(s.Workload.At)
	})
}

// readInterval returns the interval for reading the workload cluster, or zero if there is nothing to read.
func (s snapshot) readInterval() time.Duration {
	switch {
	case len(s.Machines) == 0:
		return 0
	case s.isRecovering():
		return soon
	case s.isHealthy() && s.Connection.ConsecutiveFailures == 0:
		return healthyInterval
	case !slices.ContainsFunc(s.Machines, func(m machines.OwnedMachine) bool { return s.Now.Sub(m.CreationTimestamp.Time) < newFor }):
		return unhealthyInterval
	case !s.isInitialized() && slices.ContainsFunc(s.Machines, func(m machines.OwnedMachine) bool { return m.Status.NodeRef.IsDefined() }):
		return verySoon
	}
	return soon
}

// The stages of a deletion.
const (
	deletingWorkers = iota + 1
	deletingMachines
	deletionOver
)

// decideDeletion deletes all Machines at once, after the workers. The hook of each Machine is removed as soon as the
// Machine is being deleted, because removing etcd members is no longer necessary.
func decideDeletion(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	p.Enter(deletionOver, controlplanev1.KubeadmControlPlaneDeletingDeletionCompletedReason)
	p.Stage.Message = "Deletion completed"
	if s.Cluster == nil {
		return p
	}
	if s.Workers > 0 {
		p.WaitFor(reasonWorkers, "Waiting for %d Machines and MachinePools of workers to be deleted", s.Workers).For(clusterKind, s.Cluster.Name).ToChange("")
		p.RecheckIn(preflightRecheck)
		p.Enter(deletingWorkers, reasonWorkers)
		return p
	}
	var left []string
	for _, m := range s.Machines {
		switch {
		case !m.Deleted:
			left = append(left, m.Name)
		case hasHook(m.Machine) && !m.DeletionTimestamp.IsZero():
			p.Do(removeHook{Machine: m.Name, Why: "the control plane is deleted"})
		}
	}
	if len(left) > 0 {
		p.Do(machines.DeleteMachines{Names: left, Why: "the KubeadmControlPlane is deleted"})
	}
	if n := len(s.Machines) + len(s.Created); n > 0 {
		p.WaitFor(reasonMachines, "Waiting for %d Machines to be deleted%s", n, s.Machines.Held()).
			ForAll(machineKind, machines.List(s.Machines.Machines()).Names()).ToChange("")
		p.RecheckIn(deletionRecheck)
		p.Enter(deletingMachines, reasonMachines)
	}
	return p
}

// isRestored reports whether the control plane appears to have been restored without its Machines: it has never
// reported a status, and the kubeconfig of its Cluster is older than the control plane.
func (s snapshot) isRestored() bool {
	secret := s.Secrets[secrets.Admin]
	return len(s.Machines) == 0 && s.ControlPlane.Status.ObservedGeneration == 0 && secret != nil && secret.CreationTimestamp.Before(&s.ControlPlane.CreationTimestamp) &&
		s.secretsOwner().NeedsOwner(secret)
}
