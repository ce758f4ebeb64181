package hosts

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

const (
	// maxBundles limits the reported bundles.
	maxBundles = 8
	// maxMiB limits the reported sizes, which a host could exaggerate until their number of bytes is not a number any more.
	maxMiB = 1 << 40
	// clockTolerance is the change of a clock offset from which on it is reported. It is more than half of the unit, which is a
	// minute.
	clockTolerance = 40 * time.Second
	// sizeTolerance is the part of a size by which it has to change to be reported.
	sizeTolerance = 50
)

// states returns the state of the host in each stage. No two stages have the same state, because reportedStage
// (decide.go) looks up the stage of the reported state. stageGone has none.
func states() map[int]infrav1.SSHHostState {
	return map[int]infrav1.SSHHostState{
		stageUnreachable: infrav1.SSHHostUnreachable, stageQuarantined: infrav1.SSHHostQuarantined, stageCleaning: infrav1.SSHHostCleaning,
		stagePreparing: infrav1.SSHHostPreparing, stageInUse: infrav1.SSHHostInUse, stageAvailable: infrav1.SSHHostAvailable,
	}
}

// conditionInput is a snapshot with the plan, from which the conditions are computed.
type conditionInput struct {
	snapshot
	plan reconciler.Plan
}

// conditions of an SSHHost.
var conditions = condition.Table[conditionInput]{
	{Type: infrav1.AvailableCondition, Compute: conditionInput.available},
	{Type: infrav1.ReachableCondition, Compute: conditionInput.reachable},
	{Type: infrav1.PreflightPassedCondition, Compute: conditionInput.preflightPassed},
	{Type: infrav1.BundleInstallableCondition, Compute: conditionInput.bundleInstallable},
	{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
}

func (j conditionInput) available() condition.Result {
	claim, stage := j.Object.Status.Claim, j.plan.Stage
	switch {
	case !j.Object.DeletionTimestamp.IsZero():
		return condition.False(clusterv1.DeletingReason, "The SSHHost is being deleted")
	case stage.Order == stageAvailable && ptr.Deref(j.Object.Spec.Maintenance, false):
		return condition.False(reasonMaintenance, "The host is in maintenance: set spec.maintenance to false to offer it again")
	case stage.Order == stageAvailable:
		return condition.True(string(infrav1.SSHHostAvailable))
	case stage.Message != "":
		return condition.False(stage.Reason, stage.Message)
	case claim != nil && !inventory.IsReleased(claim):
		return condition.False(reasonInUse, fmt.Sprintf("SSHMachine %s/%s uses the host", claim.Namespace, claim.Name))
	}
	return condition.False(string(states()[stage.Order]), "")
}

func (j conditionInput) reachable() condition.Result {
	switch {
	case j.Denied != "":
		return condition.Unknown(reasonDenied, j.Denied)
	case j.Check == nil:
		return condition.Unknown(reasonNotChecked, "")
	case j.Check.Fault != nil:
		return condition.False(j.Check.Fault.Reason, inventory.Sentence(j.Check.Fault.Message))
	}
	return condition.True("Connected")
}

// preflightPassed reports the findings of the last preflight checks, which do not run while the host is used.
func (j conditionInput) preflightPassed() condition.Result {
	if j.Check == nil || !j.Check.Preflight {
		return condition.Mirror(j.Object.Status.Conditions, infrav1.PreflightPassedCondition, condition.Absent())
	}
	if j.Check.hasFatal() {
		return condition.False(reasonPreflight, j.Check.problems(true))
	}
	return condition.TrueBecause("Passed", j.Check.problems(false))
}

// bundleInstallable reports the container runtime of the host before a machine claims it.
func (j conditionInput) bundleInstallable() condition.Result {
	switch {
	case j.Check == nil || j.Check.Fault != nil:
		return condition.Mirror(j.Object.Status.Conditions, infrav1.BundleInstallableCondition, condition.Absent())
	case inventory.HasContainerd(j.Check.Facts.ContainerRuntime):
		return condition.False(reasonRuntime, "The containerd that is active on the host was not installed by Slipway, so only SSHMachines with spec.bundle None can claim the host: "+
			"remove containerd, and Docker if it uses it, to offer the host to others")
	}
	return condition.True("NoContainerRuntime")
}

func (j conditionInput) deleting() condition.Result {
	if j.Object.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.NotDeletingReason, "")
	}
	return condition.TrueBecause(clusterv1.DeletingReason, infrastructure.WaitMessages(j.plan))
}

// report computes the status and the events of an SSHHost. Package reconciler calls it at the end of a reconciliation,
// with the plan of [decide] and the outcome of its actions.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	old := s.Object.Status
	s = s.after(out)
	status := infrav1.SSHHostStatus{
		ObservedGeneration: s.Object.Generation,
		Conditions:         conditions.Evaluate(conditionInput{s, p}, reconciler.EvaluateOptionsFor(s.Object, s.Now)),
		State:              states()[p.Stage.Order],
		StateSince:         old.StateSince,
		Facts:              old.Facts,
		Record:             old.Record,
		Bundles:            old.Bundles,
		LastCleaning:       old.LastCleaning,
		LastNamespace:      inventory.LastNamespace(s.Object),
		LastNamespaceUID:   s.lastNamespaceUID(),
	}
	if status.State != old.State || old.StateSince == nil {
		status.StateSince = ptr.To(metav1.NewTime(s.Now.Truncate(time.Second)))
	}
	if s.isConfirmed() {
		status.ConfirmedClaimID = s.Object.Status.Claim.ClaimID
	}
	if k := s.Check; k != nil && k.Fault == nil {
		status.LastCleaning = lastCleaning(k.Facts.Cleaning)
		status.Facts, status.Record, status.Bundles = facts(k.Facts, old.Facts), record(k.Record), bundles(k.Facts.Bundles, s.Versions)
	}
	return reconciler.Report{Status: status, Events: eventsOf(s, p, status, out)}
}

// lastNamespaceUID returns the UID of the namespace in the annotation, which was written for the claim before the record. It is
// unknown if the annotation was changed by somebody else.
func (s snapshot) lastNamespaceUID() string {
	switch last, claim := inventory.LastNamespace(s.Object), s.Object.Status.Claim; {
	case claim != nil && claim.Namespace == last:
		return claim.NamespaceUID
	case last != s.Object.Status.LastNamespace:
		return ""
	}
	return s.Object.Status.LastNamespaceUID
}

// after returns the snapshot with the results of the plan's actions.
func (s snapshot) after(out reconciler.Outcome) snapshot {
	for _, a := range out.Done {
		switch a := a.(type) {
		case recordClaim:
			k, claim := *s.Check, s.Object.Status.Claim
			k.Record = &remote.Record{ClaimID: claim.ClaimID, Namespace: claim.Namespace, Name: claim.Name}
			s.Check = &k
		case finishCleaning, dropClaim:
			s.Object = inventory.WithoutClaim(s.Object)
			if _, cleaned := a.(finishCleaning); cleaned && s.Check != nil {
				k := *s.Check
				k.Record = nil
				s.Check = &k
			}
		}
	}
	return s
}

// facts returns the facts for the status. Values that vary from one check to the next retain their reported value until they differ
// from it noticeably, because the status of every host would be written with every check otherwise.
func facts(f remote.Facts, reported infrav1.SSHHostFacts) infrav1.SSHHostFacts {
	out := infrav1.SSHHostFacts{
		Hostname: f.Hostname, OSImage: f.OSImage, Architecture: f.Architecture, Kernel: f.Kernel, CPUs: int32(f.CPUs), MemoryMiB: steadySize(f.MemoryMiB, reported.MemoryMiB),
		DiskMiB: steadySize(f.DiskMiB, reported.DiskMiB), ContainerRuntime: f.ContainerRuntime, CgroupVersion: int32(f.CgroupVersion), MachineIDHash: f.MachineIDHash, ProductUUIDHash: f.ProductUUIDHash,
		SecurityModule: f.SecurityModule,
	}
	for _, d := range f.Disks {
		out.Disks = append(out.Disks, infrav1.SSHHostDisk{Name: d.Name, SizeMiB: min(d.SizeMiB, maxMiB)})
	}
	before := time.Duration(ptr.Deref(reported.ClockOffsetSeconds, 0)) * time.Second
	if difference := f.ClockOffset - before; difference.Abs() < clockTolerance {
		out.ClockOffsetSeconds = reported.ClockOffsetSeconds
	} else if offset := f.ClockOffset.Round(time.Minute); offset != 0 {
		out.ClockOffsetSeconds = ptr.To(int32(min(max(offset.Seconds(), -1<<30), 1<<30)))
	}
	return out
}

// steadySize returns the reported size in MiB if the measured one differs by less than a part of sizeTolerance.
func steadySize(measured, reported int64) int64 {
	measured = min(measured, maxMiB)
	if reported > 0 && max(measured-reported, reported-measured) < reported/sizeTolerance {
		return reported
	}
	return measured
}

func record(r *remote.Record) *infrav1.SSHHostRecord {
	if r == nil {
		return nil
	}
	return &infrav1.SSHHostRecord{ClaimID: r.ClaimID, Namespace: r.Namespace, Name: r.Name}
}

func lastCleaning(r *remote.CleaningRecord) *infrav1.SSHHostCleaningRecord {
	if r == nil {
		return nil
	}
	items := slices.DeleteFunc(slices.Clone(r.Verified), func(item string) bool { return item == "" })
	return &infrav1.SSHHostCleaningRecord{ClaimID: r.ClaimID, Time: ptr.To(metav1.NewTime(r.CleanedAt)), Verified: items}
}

func bundles(digests []string, versions map[string]string) (out []infrav1.SSHHostBundle) {
	for _, d := range digests[:min(len(digests), maxBundles)] {
		out = append(out, infrav1.SSHHostBundle{Digest: d, Version: versions[d]})
	}
	return out
}

// eventsOf returns events for the actions, and for a state in which the host cannot be used when it begins.
func eventsOf(s snapshot, p reconciler.Plan, status infrav1.SSHHostStatus, out reconciler.Outcome) []reconciler.Event {
	var list []reconciler.Event
	for _, a := range out.Done {
		switch a := a.(type) {
		case recordClaim:
			list = append(list, reconciler.Normal("Claimed", "SSHMachine %s uses the host", a.Machine))
		case finishCleaning:
			list = append(list, reconciler.Normal("Cleaned", "The host is clean"))
			if a.Remains != "" {
				list = append(list, reconciler.Warning(reasonNodeRemains, "The host is clean, but %s", a.Remains))
			}
		case deleteNode:
			list = append(list, reconciler.Normal("NodeRemoved", "Deleted Node %s of Cluster %s, which the host registered after its Machine was deleted", a.Node, a.Cluster))
		}
	}
	begins := status.State != s.Object.Status.State
	if begins && p.Stage.Message != "" && (status.State == infrav1.SSHHostQuarantined || status.State == infrav1.SSHHostUnreachable) {
		list = append(list, reconciler.Warning(p.Stage.Reason, "%s", p.Stage.Message))
	}
	return list
}
