package machines

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// kind of the objects that the controller reconciles.
const kind = "SSHMachine"

// Reasons of waits and conditions.
const (
	reasonOwner          = "WaitingForOwner"
	reasonInfrastructure = "WaitingForClusterInfrastructureReady"
	reasonNoHost         = "NoHostAvailable"
	reasonAmbiguous      = "SeveralHostsHaveRecord"
	reasonHostLost       = "HostNotFound"
	reasonClaiming       = "ClaimingHost"
	reasonRecording      = "RecordingClaim"
	reasonUnreachable    = "HostUnreachable"
	reasonQuarantined    = "HostQuarantined"
	reasonNoVersion      = "VersionMissing"
	reasonPreflight      = "PreflightFailed"
	reasonPreparing      = "PreparingHost"
	reasonBootstrapping  = "Bootstrapping"
	reasonFailed         = contract.ReasonBootstrapFailed
	reasonReleasing      = "ReleasingHost"
	reasonVirtualIP      = "WaitingForVirtualIP"
	reasonUnchecked      = "HostNotChecked"
)

// Stages of a plan ([reconciler.Stage]).
const (
	stageClaim = iota + 1
	stagePreparation
	stageBootstrap
	stageProvisioned
	stageDeletion
)

const (
	// waitRecheck is the delay before the next check of something that causes no event, such as a bundle.
	waitRecheck = 30 * time.Second
	// progressRecheck is the interval in which the progress of the bootstrap is read.
	progressRecheck = time.Second
	// hostRecheck is the delay before the next attempt to reach a host.
	hostRecheck = 10 * time.Second
	// unsuitableAfter is the time from the creation of a machine after which it releases a host whose preflight checks fail, even
	// if no other host is available. Until then, the operator can correct the host. unsuitableFor is the time for which it does
	// not claim the host again.
	unsuitableAfter, unsuitableFor = 10 * time.Minute, 10 * time.Minute
	// cacheRecheck is the delay until the cache has the last write of this controller.
	cacheRecheck = 50 * time.Millisecond
	// unrecordedTimeout is the time after which a claim is released that could not be recorded, because the host does not
	// respond. A reboot takes less.
	unrecordedTimeout = 5 * time.Minute
)

// decide computes the plan for the snapshot. The driver (package reconciler) calls it after observe, and again after a read.
// A claim is the entry of the machine in the status of its SSHHost. The record is a file on the host with the claim ID.
// The first row that applies decides:
//
//	the cache lacks the last claim                     recheck
//	several hosts have the claim                       drop the claims of those without the record
//	deleting                                           release the host, wait until it is clean (deletion.go)
//	no host has the claim, one has the record          claim it
//	provisioned                                        nothing
//	no owner, or the infrastructure is not provisioned wait
//	no claim ID                                        set it
//	no host                                            claim one; never a second one after the machine was provisioned
//	the host was quarantined before it was changed     drop the claim
//	the host died before the claim was recorded        release it; its controller cleans it if the record was written
//	the host is unreachable or quarantined             wait
//	the claim is not recorded on the host yet          wait
//	the host is being prepared                         wait
//	the connection to the host fails                   wait
//	the progress of the bootstrap is unknown           read it
//	the bootstrap runs, has succeeded or has failed    wait, nothing, or wait for its replacement
//	the host is not prepared                           prepare it; release it if it is unsuitable
//	there is no bootstrap data yet                     wait
//	it creates a cluster with a virtual IP address     wait until its host holds the address
//	the bootstrap data was rejected a moment ago       wait
//	otherwise                                          run the bootstrap data
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	p.Enter(decideStage(s, &p))
	return p
}

func decideStage(s snapshot, p *reconciler.Plan) (stage int, reason string) {
	switch {
	case s.Stale:
		p.WaitFor(reasonClaiming, "Waiting for the last claim to be visible").For(kind, s.Object.Name).ForTime()
		p.RecheckIn(cacheRecheck)
		return stageClaim, reasonClaiming
	case len(s.Surplus) > 0:
		for _, h := range s.Surplus {
			p.Do(dropClaim{Host: nameOf(h), Why: "host " + nameOf(s.Host) + " has the claim too"})
		}
		p.RecheckIn(cacheRecheck)
		return stageClaim, reasonClaiming
	case !s.Object.DeletionTimestamp.IsZero():
		decideDeletion(s, p)
		return stageDeletion, reasonReleasing
	case s.Host == nil && len(s.Recorded) > 0:
		decideAdoption(s, p)
		return stageClaim, reasonClaiming
	case s.isProvisioned():
		return stageProvisioned, ""
	case s.Machine == nil:
		p.WaitFor(reasonOwner, "Waiting for a Machine to own this object").For(kind, s.Object.Name).ToChange("metadata.ownerReferences")
		return stageClaim, reasonOwner
	case s.Cluster == nil || !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false):
		p.WaitFor(reasonInfrastructure, "Waiting for the cluster's infrastructure to be provisioned").
			For("Cluster", s.clusterName()).ToChange("status.initialization.infrastructureProvisioned")
		return stageClaim, reasonInfrastructure
	case s.Object.Spec.ClaimID == "" || s.Object.Spec.ProviderID == "":
		p.Do(identify{})
		p.RecheckIn(cacheRecheck)
		return stageClaim, reasonClaiming
	case s.Host == nil:
		decideClaim(s, p)
		return stageClaim, reasonNoHost
	}
	return decideHost(s, p)
}

// decideClaim claims a host.
func decideClaim(s snapshot, p *reconciler.Plan) {
	if s.wasProvisioned() {
		p.WaitFor(reasonHostLost, "No SSHHost that was checked has the record of this machine: restore its SSHHost, or delete the Machine to have it replaced").
			For(kind, s.Object.Name).UntilUserActs()
		p.RecheckIn(waitRecheck)
		return
	}
	request := s.request()
	choice := request.Choose(s.Hosts)
	if choice.Host == nil {
		p.WaitFor(reasonNoHost, "%s", choice.Message(request)).For(kind, s.Object.Name).UntilUserActs()
		p.RecheckIn(waitRecheck) // the labels of the namespace are not watched
		return
	}
	p.Do(claimHost{Host: nameOf(choice.Host), Why: "it is available and matches"})
	p.RecheckIn(cacheRecheck)
}

// decideAdoption claims the host that has the record of the machine, as after a move or a restore. A host that the namespace
// used last need not be offered to it again, because a move does not take the labels of the Namespace along.
func decideAdoption(s snapshot, p *reconciler.Plan) {
	if len(s.Recorded) > 1 {
		p.WaitFor(reasonAmbiguous, "SSHHosts %s have the record of this machine: delete the wrong ones, or have the operator clean them", condition.Names(names(s.Recorded))).
			ForAll("SSHHost", names(s.Recorded)).UntilUserActs()
		return
	}
	h := s.Recorded[0]
	if !inventory.IsOffered(h, s.Namespace) && !inventory.WasUsedBy(h, s.Namespace) {
		p.WaitFor(reasonNoHost, "SSHHost %s has the record of this machine, but is not offered to namespace %s: let the operator offer it (spec.offeredTo)", h.Name, s.Namespace.Name).
			For("SSHHost", nameOf(h)).ToChange("spec.offeredTo")
		p.RecheckIn(waitRecheck)
		return
	}
	p.Do(claimHost{Host: nameOf(h), Why: "it has the record of this machine"})
	p.RecheckIn(cacheRecheck)
}

// decideHost turns a claimed host into a node.
func decideHost(s snapshot, p *reconciler.Plan) (stage int, reason string) {
	h := s.Host
	switch {
	case h.Status.State == infrav1.SSHHostQuarantined && !inventory.IsConfirmed(h) && !hasOwnRecord(h):
		p.Do(dropClaim{Host: nameOf(h), Why: "the host was quarantined before anything on it was changed"})
		p.RecheckIn(cacheRecheck)
		return stageClaim, reasonClaiming
	case h.Status.State == infrav1.SSHHostUnreachable && s.recordDeadline() == 0:
		p.Do(releaseHost{Host: nameOf(h), Why: "it does not respond, and the claim was not recorded on it"})
		p.RecheckIn(cacheRecheck)
		return stageClaim, reasonClaiming
	case h.Status.State == infrav1.SSHHostUnreachable:
		p.RecheckIn(s.recordDeadline())
		p.WaitFor(reasonUnreachable, "SSHHost %s %s", h.Name, unreachableText(h)).For("SSHHost", nameOf(h)).ToChange("status.state")
		return s.hostStage(), reasonUnreachable
	case h.Status.State == infrav1.SSHHostQuarantined && inventory.IsConfirmed(h):
		p.WaitFor(reasonQuarantined, "SSHHost %s is quarantined: its condition Available has the reason", h.Name).For("SSHHost", nameOf(h)).ToChange("status.state")
		return s.hostStage(), reasonQuarantined
	case !inventory.IsConfirmed(h):
		p.WaitFor(reasonRecording, "Waiting for the claim to be recorded on SSHHost %s", h.Name).For("SSHHost", nameOf(h)).ToChange("status.confirmedClaimID")
		return stageClaim, reasonRecording
	case s.Preparing.Running:
		waitForPreparation(s, p)
		return stagePreparation, reasonPreparing
	case s.Fault != nil:
		p.WaitFor(s.Fault.Reason, "%s", inventory.Sentence(s.Fault.Message)).For("SSHHost", nameOf(h)).ForTime()
		p.RecheckIn(hostRecheck)
		return s.hostStage(), s.Fault.Reason
	case s.Progress == nil:
		p.Reads = append(p.Reads, readProgress{Host: nameOf(h)})
		return stageBootstrap, reasonBootstrapping
	}
	return decideBootstrap(s, p)
}

// recordDeadline returns the time until the claim of an unreachable host is released, because nothing was changed on the host
// for it, so that another host can be used. It is negative for a host that the machine may use already.
func (s snapshot) recordDeadline() time.Duration {
	h := s.Host
	if inventory.IsConfirmed(h) || hasOwnRecord(h) || s.wasProvisioned() || h.Status.StateSince == nil {
		return -1
	}
	return max(h.Status.StateSince.Add(unrecordedTimeout).Sub(s.Now), 0)
}

// hasOwnRecord reports whether the record on a host is the record of its claim. After a restore, the host was quarantined
// because of this record until the claim was written.
func hasOwnRecord(h *infrav1.SSHHost) bool {
	return h.Status.Record != nil && h.Status.Record.ClaimID == h.Status.Claim.ClaimID
}

// hostStage returns the stage of a machine whose host cannot be used now. A host that was prepared remains so when it cannot be
// reached: its data may run.
func (s snapshot) hostStage() int {
	switch {
	case !inventory.IsConfirmed(s.Host):
		return stageClaim
	case condition.Set(s.Object.Status.Conditions).IsTrue(infrav1.HostPreparedCondition):
		return stageBootstrap
	}
	return stagePreparation
}

func decideBootstrap(s snapshot, p *reconciler.Plan) (stage int, reason string) {
	switch s.Progress.State {
	case remote.BootstrapNone:
	case remote.BootstrapDone:
		return stageProvisioned, ""
	case remote.BootstrapRunning:
		p.WaitFor(reasonBootstrapping, "The bootstrap data runs on SSHHost %s", s.Host.Name).For("SSHHost", nameOf(s.Host)).ForTime()
		p.RecheckIn(progressRecheck)
		return stageBootstrap, reasonBootstrapping
	case remote.BootstrapFailed:
		p.WaitFor(reasonFailed, "The bootstrap data failed on SSHHost %s", s.Host.Name).For(kind, s.Object.Name).UntilUserActs()
		return stageBootstrap, reasonFailed
	}
	if !decidePreparation(s, p) {
		return stagePreparation, reasonPreparing
	}
	if s.bootstrapSecretName() == "" {
		infrastructure.WaitForBootstrapData(p, reconciler.Subject{Kind: "Machine", Name: s.Machine.Name}, s.Cluster, s.Machine.Spec.Bootstrap)
		return stageBootstrap, infrastructure.ReasonBootstrapData
	}
	if s.needsVirtualIP() {
		p.WaitFor(reasonVirtualIP, "Waiting for SSHHost %s to hold the virtual IP address, because kubeadm uses it: condition %s of SSHCluster %s has the state",
			s.Host.Name, infrav1.VirtualIPHeldCondition, s.SSHCluster.Name).For("SSHCluster", s.SSHCluster.Name).ToChange("status.virtualIP")
		p.RecheckIn(waitRecheck)
		return stageBootstrap, reasonVirtualIP
	}
	if r := s.Rejected; r != nil && r.Secret == s.bootstrapSecretName() && s.Now.Sub(r.At) < waitRecheck {
		p.WaitFor(r.Fault.Reason, "%s", inventory.Sentence(r.Fault.Message)).For("Secret", r.Secret).UntilUserActs()
		p.RecheckIn(r.At.Add(waitRecheck).Sub(s.Now))
		return stageBootstrap, r.Fault.Reason
	}
	p.Do(runBootstrap{Host: nameOf(s.Host), Secret: s.bootstrapSecretName()})
	p.WaitFor(reasonBootstrapping, "The bootstrap data runs on SSHHost %s", s.Host.Name).For("SSHHost", nameOf(s.Host)).ForTime()
	p.RecheckIn(progressRecheck)
	return stageBootstrap, reasonBootstrapping
}

// needsVirtualIP reports whether the machine creates the control plane of a cluster with a virtual IP address that its host
// does not hold yet.
func (s snapshot) needsVirtualIP() bool {
	if !s.isControlPlane() || s.SSHCluster == nil || s.SSHCluster.Spec.VirtualIP == "" || ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false) {
		return false
	}
	return !slices.ContainsFunc(s.SSHCluster.Status.VirtualIP.Members, func(m infrav1.SSHVirtualIPMember) bool {
		return m.Machine == s.Object.Name && ptr.Deref(m.Holder, false)
	})
}

// decidePreparation reports whether the host is prepared, and starts the job that prepares it.
func decidePreparation(s snapshot, p *reconciler.Plan) bool {
	job := s.Preparing
	ended := !job.Ended.IsZero() && job.What == s.preparation()
	switch {
	case s.Object.Spec.Bundle != infrav1.SSHBundleNone && s.version() == "":
		p.WaitFor(reasonNoVersion, "spec.version of the Machine is not set: set it, or use what is installed on the hosts (spec.bundle: None)").
			For("Machine", s.Machine.Name).ToChange("spec.version")
	case inventory.NodeAddress(s.Host) == "":
		p.WaitFor("NodeAddressMissing", "SSHHost %s has a DNS name as its address: let the operator set spec.nodeAddress to the IP address of the node", s.Host.Name).
			For("SSHHost", nameOf(s.Host)).ToChange("spec.nodeAddress")
	case s.NoBundle != nil:
		p.WaitFor(s.NoBundle.Reason, "%s", inventory.Sentence(s.NoBundle.Message)).For(kind, s.Object.Name).UntilUserActs()
		p.RecheckIn(waitRecheck)
	case ended && job.Err == nil:
		return true
	case ended && s.mustReject():
		p.Do(rejectHost{Host: nameOf(s.Host), Why: "its preflight checks for this machine failed"})
		p.RecheckIn(cacheRecheck)
	case ended && s.Now.Sub(job.Ended) < retryAfter(job.Err):
		waitForFailure(s, p)
		p.RecheckIn(job.Ended.Add(retryAfter(job.Err)).Sub(s.Now))
	case job.Busy:
		waitForPreparation(s, p)
		p.RecheckIn(hostRecheck)
	default:
		p.Do(prepare{Host: nameOf(s.Host), What: s.preparation()})
		waitForPreparation(s, p)
		p.RecheckIn(hostRecheck) // another machine may have taken the last place
	}
	return false
}

// mustReject reports whether the machine releases its host because the preflight checks failed, before anything was installed: at
// once if another host is available, or else after some time, so that another machine can use the host.
func (s snapshot) mustReject() bool {
	f := fault.As(s.Preparing.Err)
	if f == nil || f.Reason != reasonPreflight {
		return false
	}
	return s.request().Choose(s.Hosts).Host != nil || s.Now.Sub(s.Object.CreationTimestamp.Time) >= unsuitableAfter
}

// preparation describes the job that prepares the host. It is a new one for another host, claim, bundle or settings.
func (s snapshot) preparation() string {
	what := fmt.Sprintf("prepare host %s for claim %s", nameOf(s.Host), s.Object.Spec.ClaimID)
	if s.Object.Spec.Bundle == infrav1.SSHBundleNone {
		return what + " without a bundle"
	}
	what += " with bundle " + s.Bundle.Digest
	if hash := nodeSettings(s.Host.Spec.Settings, s.Object.Spec.Settings).Hash(); hash != "" {
		what += " and settings " + hash
	}
	return what
}

// retryAfter returns the delay before a failed preparation is repeated. A user has to correct an invalid host first.
func retryAfter(err error) time.Duration {
	if delay := fault.RetryAfter(err); delay > 0 {
		return delay
	}
	if fault.KindOf(err) == fault.Invalid {
		return waitRecheck
	}
	return hostRecheck
}

func waitForPreparation(s snapshot, p *reconciler.Plan) {
	p.WaitFor(reasonPreparing, "SSHHost %s is being prepared: programs and container images are installed", s.Host.Name).
		For("SSHHost", nameOf(s.Host)).ToChange("condition " + infrav1.HostPreparedCondition)
}

// waitForFailure waits until a failed preparation is repeated.
func waitForFailure(s snapshot, p *reconciler.Plan) {
	f := fault.As(s.Preparing.Err)
	switch {
	case f == nil:
		p.WaitFor(reasonPreparing, "SSHHost %s could not be prepared because of an error of the manager: it is repeated", s.Host.Name).For("SSHHost", nameOf(s.Host)).ForTime()
	case f.Kind == fault.Invalid:
		p.WaitFor(f.Reason, "%s", inventory.Sentence(f.Message)).For("SSHHost", nameOf(s.Host)).UntilUserActs()
	default:
		p.WaitFor(f.Reason, "%s", inventory.Sentence(f.Message)).For("SSHHost", nameOf(s.Host)).ForTime()
	}
}

func nameOf(h *infrav1.SSHHost) string { return h.Namespace + "/" + h.Name }

func names(hosts []*infrav1.SSHHost) (out []string) {
	for _, h := range hosts {
		out = append(out, nameOf(h))
	}
	return out
}
