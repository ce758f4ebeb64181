package hosts

import (
	"fmt"
	"slices"
	"time"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/pause"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Reasons of waits and conditions.
const (
	reasonDenied      = inventory.ReasonDenied
	reasonInUse       = "InUse"
	reasonCleaning    = "Cleaning"
	reasonNotClean    = "NotClean"
	reasonForeign     = "RecordOfAnotherMachine"
	reasonInvalid     = "InvalidRecord"
	reasonKubelet     = "UnknownKubelet"
	reasonRecordLost  = "RecordLost"
	reasonMachineLost = "SSHMachineMissing"
	reasonPreflight   = "PreflightFailed"
	reasonNotChecked  = "NotChecked"
	reasonMaintenance = "Maintenance"
	reasonAdopting    = "AdoptingHost"
	reasonForced      = "ReleasedByForce"
	reasonRuntime     = "ContainerRuntimeFound"
	reasonNode        = "DeletingNodeOfHost"
	reasonNodeRemains = "NodeRemains"
)

// Stages of a plan ([reconciler.Stage]). Each is a state of the host.
const (
	stageUnreachable = iota + 1
	stageQuarantined
	stageCleaning
	stagePreparing
	stageInUse
	stageAvailable
	// stageGone is the stage of an SSHHost that is being deleted and that nothing uses.
	stageGone
)

const (
	// checkInterval is the interval of the checks of a host that responds, unreachableInterval of others.
	checkInterval, unreachableInterval = time.Minute, 20 * time.Second
	// longestInterval is the longest interval of the checks of a host that has not responded for a long time. Each check
	// occupies a worker until it has timed out.
	longestInterval = 3 * time.Minute
	// uncleanInterval is the delay before a host that could not be cleaned is cleaned again.
	uncleanInterval = 5 * time.Minute
	// abandonedAfter is the time after which a claim without an SSHMachine is dropped, if it was never recorded.
	abandonedAfter = 2 * time.Minute
	// immediateRecheck is the delay before the next reconciliation after a change that causes no event.
	immediateRecheck = time.Millisecond
	// jobRecheck is the delay before a job is started again that could not start.
	jobRecheck = 5 * time.Second
)

// decide computes the plan for the snapshot. The driver (package reconciler) calls it after observe, and again after a read.
// A claim is the entry of an SSHMachine in the status of the SSHHost. The record is a file on the host with the claim
// ID. The first row that applies decides, but a denial holds no deletion of an unclaimed or lost host:
//
//	denied by the operator's configuration               wait
//	deleting and not claimed                             nothing
//	cleaning runs                                        wait
//	no current check                                     check the host
//	the host does not respond                            wait; it is quarantined if its machine did not wait for its cleaning
//	released or cleaning requested, and not another's    clean the host, delete the Node of a lost machine, then drop the claim
//	another cleaning requested                           remove the request
//	released and never recorded, or the machine is lost  drop the claim
//	released, and something else is on the host          wait for the operator
//	the record of an SSHMachine, as after a move         wait until the SSHMachine claims the host
//	the record or kubelet of something else              wait for the operator
//	the claim is recorded                                nothing; wait if its SSHMachine or its record is missing
//	preflight failed                                     wait for the operator
//	claimed, and the SSHMachine is missing               wait, then drop the claim
//	claimed                                              note the use, then record the claim on the host
//	otherwise                                            remove the label of a host in use
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	stage := decideStage(s, &p)
	if stage == stageInUse && !s.isProvisioned() {
		stage = stagePreparing
	}
	if stage != stageGone && s.Check != nil {
		p.RecheckIn(max(s.Check.At.Add(s.Check.interval()).Sub(s.Now), immediateRecheck))
	}
	p.Enter(stage, "")
	return p
}

func decideStage(s snapshot, p *reconciler.Plan) int {
	claim := s.Object.Status.Claim
	switch {
	case s.Object.DeletionTimestamp != nil && claim == nil:
		return stageGone
	case s.isLost():
		p.Do(dropClaim{Claim: claim.ClaimID, Why: "the SSHHost is being deleted, and the machine is lost"})
		p.RecheckIn(immediateRecheck)
		return stageCleaning
	case s.Denied != "":
		p.WaitFor(reasonDenied, "%s", s.Denied).For(kind, s.Object.Name).UntilUserActs()
		return stageUnreachable
	case s.Cleaning.Running:
		waitForCleaning(s, p)
		return stageCleaning
	case !s.isChecked():
		p.Reads = append(p.Reads, readHostState{Address: s.Object.Spec.Address})
		return stageUnreachable
	case s.Check.Fault != nil:
		return decideFault(s, p, s.Check.Fault)
	case s.mustClean():
		return decideCleaning(s, p)
	case s.requestedCleaning() != "":
		p.Do(removeRequest{Request: s.requestedCleaning()})
		return s.reportedStage()
	case inventory.IsReleased(claim) && !s.isConfirmed():
		p.Do(dropClaim{Claim: claim.ClaimID, Why: "it was released and never recorded on the host"})
		p.RecheckIn(immediateRecheck)
		return stageCleaning
	}
	return decideUse(s, p)
}

// isLost reports whether an administrator deletes the SSHHost of a machine that is gone for good and will not be cleaned.
func (s snapshot) isLost() bool {
	return s.Object.DeletionTimestamp != nil && inventory.IsReleased(s.Object.Status.Claim) && s.Object.Annotations[infrav1.ForceReleaseAnnotation] == "true"
}

// isChecked reports whether the last check is current.
func (s snapshot) isChecked() bool {
	return s.Check != nil && s.Check.Generation == s.Object.Generation && s.Now.Sub(s.Check.At) < s.Check.interval() &&
		(s.Check.Preflight || !isFree(s.Object, *s.Check))
}

// interval returns the time for which a check is current.
func (k hostCheck) interval() time.Duration {
	if k.Fault != nil {
		return pause.Backoff(max(k.Failures, 1), unreachableInterval, longestInterval)
	}
	return checkInterval
}

// requestedCleaning returns what the operator wants to be cleaned: a claim ID, or [infrav1.CleanUnrecorded].
func (s snapshot) requestedCleaning() string {
	return s.Object.Annotations[infrav1.CleanHostAnnotation]
}

// cleanable returns the claim ID, or [infrav1.CleanUnrecorded], of what is on a host that no SSHMachine uses. Empty: there is
// nothing that the operator could request to clean.
func (s snapshot) cleanable() string {
	switch claim := s.Object.Status.Claim; {
	case claim != nil && s.isConfirmed() && s.Machine != nil, s.Adopter != nil:
		return ""
	case s.Check.Record != nil:
		return s.Check.Record.ClaimID
	case s.Check.InvalidRecord != "":
		return ""
	case s.Check.Facts.KubeletRunning:
		return infrav1.CleanUnrecorded
	case claim != nil && s.isConfirmed():
		return claim.ClaimID
	case slices.ContainsFunc(s.Check.Findings, func(f remote.Finding) bool { return f.FormerNode }):
		return infrav1.CleanUnrecorded
	}
	return ""
}

// mustClean reports whether the host has to be cleaned: its claim was released after it was recorded, and the host does not
// belong to another machine since, or the operator requests it. A missing record does not prevent it, because a tenant
// could delete the record.
func (s snapshot) mustClean() bool {
	if s.acceptedRequest() != "" {
		return true
	}
	foreign := s.Check.Record != nil && !s.hasOwnRecord() || s.Check.InvalidRecord != "" || s.Check.Record == nil && s.Check.Facts.KubeletRunning
	return inventory.IsReleased(s.Object.Status.Claim) && s.isConfirmed() && !foreign
}

// decideCleaning starts the job that cleans the host, or ends the cleaning when the job has succeeded.
func decideCleaning(s snapshot, p *reconciler.Plan) int {
	claimID := s.claimToClean()
	job := s.Cleaning
	ended := !job.Ended.IsZero() && job.What == cleaningOf(claimID)
	failed := fault.As(job.Err)
	switch {
	case failed == nil:
		failed = fault.New(fault.KindOf(job.Err), reasonNotClean, "the host cannot be cleaned: %v", job.Err)
	case failed.Reason == remote.ReasonScriptFailed, failed.Reason == remote.ReasonFilesFailed:
		failed = fault.New(failed.Kind, reasonNotClean, "the host cannot be cleaned: %s", failed.Message)
	}
	switch {
	case ended && job.Err == nil:
		return decideEnd(s, p, claimID)
	case ended && s.Now.Sub(job.Ended) < retryAfter(failed):
		p.RecheckIn(job.Ended.Add(retryAfter(failed)).Sub(s.Now))
		if failed.Kind == fault.Unreachable {
			return decideFault(s, p, failed)
		}
		waitForFault(s, p, failed)
		return stageQuarantined
	case job.Busy:
		waitForCleaning(s, p)
		p.RecheckIn(jobRecheck)
		return stageCleaning
	}
	p.Do(clean{Claim: claimID, DeleteBundles: s.deletesBundles()})
	waitForCleaning(s, p)
	return stageCleaning
}

// retryAfter returns the delay before a failed cleaning is repeated.
func retryAfter(f *fault.Fault) time.Duration {
	if f.Kind == fault.Unreachable {
		return unreachableInterval
	}
	return uncleanInterval
}

// decideFault waits until a host that cannot be reached can be. If nothing else waits for its cleaning, as after a release by
// force, it is quarantined: its node may still run.
func decideFault(s snapshot, p *reconciler.Plan, f *fault.Fault) int {
	if claim := s.Object.Status.Claim; inventory.IsReleased(claim) && s.isConfirmed() && s.Machine == nil {
		f = fault.New(f.Kind, reasonForced, "SSHMachine %s/%s released the host before it was clean, and it cannot be cleaned now: %s; it is cleaned as soon as it can be reached, and claimed by no machine before",
			claim.Namespace, claim.Name, f.Message)
		waitForFault(s, p, f)
		return stageQuarantined
	}
	waitForFault(s, p, f)
	return stageUnreachable
}

// waitForFault waits until a fault of the host is resolved.
func waitForFault(s snapshot, p *reconciler.Plan, f *fault.Fault) {
	message := inventory.Sentence(f.Message)
	if s.Object.DeletionTimestamp != nil && inventory.IsReleased(s.Object.Status.Claim) {
		message += fmt.Sprintf(". The SSHHost is deleted when the host is clean. If the machine is gone for good: kubectl annotate sshhost -n %s %s %s=true",
			s.Object.Namespace, s.Object.Name, infrav1.ForceReleaseAnnotation)
	}
	if f.Kind == fault.Invalid {
		p.WaitFor(f.Reason, "%s", message).For(kind, s.Object.Name).UntilUserActs()
		return
	}
	p.WaitFor(f.Reason, "%s", message).For(kind, s.Object.Name).ForTime()
}

// claimToClean returns the claim ID of what is cleaned, or [infrav1.CleanUnrecorded].
func (s snapshot) claimToClean() string {
	if request := s.acceptedRequest(); request != "" {
		return request
	}
	return s.Object.Status.Claim.ClaimID
}

// acceptedRequest returns what the operator wants to be cleaned, empty if it is not on the host.
func (s snapshot) acceptedRequest() string {
	if request := s.requestedCleaning(); request == s.cleanable() {
		return request
	}
	return ""
}

// deletesBundles reports whether the SSHMachine that releases the host wants its bundles to be deleted.
func (s snapshot) deletesBundles() bool {
	return s.Machine != nil && s.Machine.Spec.Cleaning.Bundles == infrav1.SSHBundleCacheDelete
}

func cleaningOf(claimID string) string { return "clean " + claimID }

func waitForCleaning(s snapshot, p *reconciler.Plan) {
	p.WaitFor(reasonCleaning, "The host is being cleaned").For(kind, s.Object.Name).ToChange("status.state")
}

// reportedStage returns the stage of the state in the status.
func (s snapshot) reportedStage() int {
	for stage, state := range states() {
		if state == s.Object.Status.State {
			return stage
		}
	}
	return stageQuarantined
}

// decideUse handles a host that is reachable and need not be cleaned.
func decideUse(s snapshot, p *reconciler.Plan) int {
	claim, k := s.Object.Status.Claim, s.Check
	switch {
	case s.Adopter != nil:
		p.WaitFor(reasonAdopting, "Waiting for SSHMachine %s/%s, whose record is on the host, to claim it", s.Adopter.Namespace, s.Adopter.Name).
			For("SSHMachine", s.Adopter.Namespace+"/"+s.Adopter.Name).ToChange("status.hostRef")
		return stagePreparing
	case k.Record != nil && !s.hasOwnRecord():
		p.WaitFor(reasonForeign, "The host has the record of SSHMachine %s/%s of another claim or management cluster: it is left unchanged. %s",
			k.Record.Namespace, k.Record.Name, s.cleanCommand("If that machine is gone")).For(kind, s.Object.Name).UntilUserActs()
		return stageQuarantined
	case k.InvalidRecord != "":
		p.WaitFor(reasonInvalid, "%s", inventory.Sentence(k.InvalidRecord)).For(kind, s.Object.Name).UntilUserActs()
		return stageQuarantined
	case inventory.IsReleased(claim): // without a record and with a kubelet, otherwise the host would be cleaned
		p.WaitFor(reasonKubelet, "A kubelet runs on the released host, and the record of SSHMachine %s/%s is missing: the host is left unchanged. %s",
			claim.Namespace, claim.Name, s.cleanCommand("If nothing needs the kubelet")).For(kind, s.Object.Name).UntilUserActs()
		return stageQuarantined
	case s.isConfirmed() && k.Record == nil:
		p.WaitFor(reasonRecordLost, "The host no longer has the record of SSHMachine %s/%s, for example because it was reinstalled: delete the Machine to have it replaced",
			claim.Namespace, claim.Name).For("SSHMachine", claim.Namespace+"/"+claim.Name).ToChange("")
		return stageQuarantined
	case k.Record == nil && k.Facts.KubeletRunning:
		p.WaitFor(reasonKubelet, "A kubelet runs on the host that Slipway did not start: the host is left unchanged. %s",
			s.cleanCommand("If it is not needed")).For(kind, s.Object.Name).UntilUserActs()
		return stageQuarantined
	case s.isConfirmed() && s.Machine == nil:
		p.WaitFor(reasonMachineLost, "SSHMachine %s/%s, which uses the host, does not exist in this management cluster: it was moved, or deleted by force. %s",
			claim.Namespace, claim.Name, s.cleanCommand("If it is gone")).For(kind, s.Object.Name).UntilUserActs()
		return stageQuarantined
	case s.isConfirmed():
		if !s.isNoted() {
			p.Do(noteUse{Namespace: claim.Namespace})
		}
		decideDeletion(s, p)
		return stageInUse
	case k.hasFatal():
		problems := k.problems(true)
		if s.cleanable() != "" {
			problems += "\n" + s.cleanCommand("If nothing needs what another node left")
		}
		p.WaitFor(reasonPreflight, "The host cannot become a node:\n%s", problems).For(kind, s.Object.Name).UntilUserActs()
		return stageQuarantined
	case claim != nil && s.Machine == nil && s.isAbandoned():
		p.Do(dropClaim{Claim: claim.ClaimID, Why: "its SSHMachine does not exist, and the claim was never recorded"})
		p.RecheckIn(immediateRecheck)
		return stagePreparing
	case claim != nil && s.Machine == nil: // the SSHMachine is created before its claim, so the cache will have it soon
		p.WaitFor(reasonMachineLost, "Waiting for SSHMachine %s/%s, which has claimed the host", claim.Namespace, claim.Name).
			For("SSHMachine", claim.Namespace+"/"+claim.Name).ToChange("spec.claimID")
		p.RecheckIn(jobRecheck)
		return stagePreparing
	case claim != nil && !s.isNoted():
		p.Do(noteUse{Namespace: claim.Namespace})
		return stagePreparing
	case claim != nil:
		p.Do(recordClaim{Claim: claim.ClaimID, Machine: claim.Namespace + "/" + claim.Name})
		decideDeletion(s, p)
		return stagePreparing
	case s.Object.Labels[infrastructure.MoveHierarchyLabel] == infrastructure.MoveInUse:
		p.Do(removeUse{})
	}
	return stageAvailable
}

// isNoted reports whether the metadata of the host has its use: the namespace that uses it, and the label with which
// `clusterctl move` takes it along. A host that the operator labeled moves anyway.
func (s snapshot) isNoted() bool {
	_, isMarked := s.Object.Labels[infrastructure.MoveHierarchyLabel]
	return isMarked && inventory.LastNamespace(s.Object) == s.Object.Status.Claim.Namespace
}

// isAbandoned reports whether a claim that was never recorded has waited for its SSHMachine longer than a cache can lag behind.
func (s snapshot) isAbandoned() bool {
	status := s.Object.Status
	return status.State == infrav1.SSHHostPreparing && status.StateSince != nil && s.Now.Sub(status.StateSince.Time) > abandonedAfter
}

// decideDeletion holds the deletion of an SSHHost that an SSHMachine uses, because its connection is needed to clean it.
func decideDeletion(s snapshot, p *reconciler.Plan) {
	if c := s.Object.Status.Claim; s.Object.DeletionTimestamp != nil && c != nil {
		p.WaitFor(reasonInUse, "SSHMachine %s/%s uses the host: delete its Machine first", c.Namespace, c.Name).
			For("SSHMachine", c.Namespace+"/"+c.Name).ToChange("")
	}
}

// cleanCommand returns the command that requests the cleaning.
func (s snapshot) cleanCommand(when string) string {
	return fmt.Sprintf("%s, have the host cleaned: kubectl annotate sshhost -n %s %s %s=%s", when, s.Object.Namespace, s.Object.Name,
		infrav1.CleanHostAnnotation, s.cleanable())
}
