package machine

import (
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// kind of the objects that the controller reconciles.
const kind = "LocalMachine"

// Reasons of waits and conditions. Their values must not change.
const (
	reasonOwner          = "WaitingForOwner"
	reasonInfrastructure = "WaitingForClusterInfrastructureReady"
	reasonBootstrapData  = infrastructure.ReasonBootstrapData
	reasonNoImage        = "NodeImageUnknown"
	reasonCreating       = "CreatingMachine"
	reasonRestarting     = "WaitingForMachine"
	reasonBootstrapping  = "Bootstrapping"
	reasonFailed         = contract.ReasonBootstrapFailed
	reasonInterrupted    = "BootstrapInterrupted"
	reasonForeignID      = "ForeignProviderID"
	reasonForeign        = "MachineNotOwned"
	reasonDenied         = "DeniedByPolicy"
	reasonUnusable       = "NotANodeImage"
	reasonSkew           = "NodeVersionSkew"
	reasonNoNetwork      = "SimulatedNetwork"
	reasonStarting       = "Booting"
	reasonDeleting       = "DeletingMachine"
)

// Stages of a plan ([reconciler.Stage]).
const (
	stageIdentity = iota + 1
	stageBackend
	stageDeletion
	stageProvisioned
	stageCreation
	stageBootstrap
)

// lostEventRecheck is the delay before a machine is inspected again after a change in the backend, in case its event is
// lost.
const lostEventRecheck = 10 * time.Second

// A kube-apiserver may exit for the first time after kubeadm has given up, as on a slow host. serverRecheck is the interval
// for reading its reason, and serverTime the time after which it is not read any more.
const (
	serverRecheck = 15 * time.Second
	serverTime    = 5 * time.Minute
)

// quotaRecheck is the delay before the next check if the limit of machines is reached.
const quotaRecheck = 30 * time.Second

// versionRecheck is the delay before the next check while the control plane has an older version.
const versionRecheck = 30 * time.Second

// immediateRecheck is the delay before a machine is inspected again after an immediate change, which causes no event.
const immediateRecheck = time.Millisecond

// decide computes the plan for a LocalMachine. Package reconciler calls it in each reconciliation, again after the
// reads that it requests. It is pure: it neither reads nor writes. The first row that applies decides:
//
//	the provider ID cannot be this object's     wait; nothing if the object is being deleted
//	the backend does not respond                wait, unless deletion needs no backend (volatile, or no provider ID)
//	deleting                                    delete the machine, wait
//	provisioned                                 recreate a lost volatile machine, apply pending changes
//	the machine belongs to something else       wait; if to an earlier LocalMachine: delete it
//	the machine is being removed                wait
//	the machine exists and does not run         wait while it starts, then start it
//	the machine runs                            set the provider ID, run the bootstrap data of a scripted machine
//	it needs a network, its LocalCluster has none  wait for a user
//	a prerequisite is missing                   wait; a scripted machine can boot without bootstrap data
//	denied or refused                           wait
//	otherwise                                   set the provider ID, create the machine
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	deleting := !s.Object.DeletionTimestamp.IsZero()
	stage, reason := stageCreation, reasonAbsent
	switch {
	case s.Name == "" && deleting: // it cannot have a machine
		stage = stageDeletion
	case s.Name == "":
		stage = stageIdentity
		p.WaitFor(reasonForeignID, "spec.providerID does not match LocalMachine %s: delete the LocalMachine, and create it without "+
			"spec.providerID, which its controller sets", s.Object.Name).For(kind, s.Object.Name).UntilUserActs()
	case s.Fault != nil && !(deleting && (s.Capabilities.Volatile || s.neverHadHost())):
		stage = stageBackend
		p.WaitFor(s.Fault.Reason, "%s", s.Fault.Message).For(kind, s.Object.Name).ForTime()
		if s.Fault.Kind != fault.Unreachable { // otherwise an event reports when the backend responds
			p.RecheckIn(lostEventRecheck)
		}
	case deleting:
		stage = stageDeletion
		decideDeletion(s, &p)
	case s.provisioned():
		stage = stageProvisioned
		decideProvisioned(s, &p)
	case s.HostMachine.State == backend.Foreign:
		stage = stageIdentity
		p.WaitFor(reasonForeign, "%s on this host has the name of this machine but does not belong to it (label %s): "+
			"it is left unchanged; remove it if it is not needed", s.Name, backend.LabelObject).For(kind, s.Object.Name).UntilUserActs()
		p.RecheckIn(lostEventRecheck)
	case s.isStale():
		stage = stageIdentity
		p.Do(deleteMachine{Name: s.Name, Why: "it belongs to an earlier LocalMachine of this name"})
		waitForResult(s, &p, reasonCreating, "An old machine of this name is being deleted")
	case s.HostMachine.State == backend.Running:
		stage, reason = stageBootstrap, reasonBootstrapping
		decideID(s, &p)
		decideRunning(s, &p)
	case s.HostMachine.State == backend.Removing:
		waitForBackend(s, &p, reasonCreating, "A machine of this name is being deleted")
	case s.HostMachine.State.Exists():
		decideID(s, &p)
		decideStart(s, &p)
	default:
		decideNew(s, &p)
	}
	p.Enter(stage, reason)
	return p
}

// neverHadHost reports whether the backend is unreachable and the object never had a machine, because the provider ID
// is written before one is created. This is the case if the manager runs in a Pod, where there is no Docker to wait
// for.
func (s snapshot) neverHadHost() bool {
	return s.Fault.Kind == fault.Unreachable && s.Object.Spec.ProviderID == "" && !s.provisioned()
}

func decideDeletion(s snapshot, p *reconciler.Plan) {
	switch s.HostMachine.State {
	case "", backend.Absent, backend.Foreign:
	case backend.Removing:
		waitForBackend(s, p, reasonDeleting, "The machine "+s.Name+" is being deleted")
	default:
		p.Do(deleteMachine{Name: s.Name, Why: "the LocalMachine is being deleted"})
		waitForResult(s, p, reasonDeleting, "The machine "+s.Name+" is being deleted")
	}
}

// decideProvisioned only reports the state of a provisioned machine and does not repair it, except for volatile
// machines.
func decideProvisioned(s snapshot, p *reconciler.Plan) {
	switch {
	case s.HostMachine.State == backend.Running:
		decideChanges(s, p)
		decideKubelet(s, p)
		decideEtcd(s, p)
	case !s.Capabilities.Volatile:
		decideEtcd(s, p)
	default:
		p.Do(createMachine{Name: s.Name, Image: s.Capabilities.Image, Why: "it was lost with its workload cluster's memory"})
		p.RecheckIn(s.Capabilities.ChangesAfter)
	}
}

// decideChanges applies pending changes to a running machine.
func decideChanges(s snapshot, p *reconciler.Plan) {
	if s.HostMachine.Pending != "" {
		p.Do(updateMachine{Name: s.Name, Why: s.HostMachine.Pending})
	}
	if s.Capabilities.ChangesAfter > 0 {
		p.RecheckIn(s.HostMachine.Since.Add(s.Capabilities.ChangesAfter).Sub(s.Now))
	}
}

// decideNew creates the machine once all prerequisites are met.
func decideNew(s snapshot, p *reconciler.Plan) {
	switch {
	case s.Machine == nil && s.Pool == nil:
		p.WaitFor(reasonOwner, "Waiting for a Machine or a MachinePool to own this object").For(kind, s.Object.Name).ToChange("metadata.ownerReferences")
	case s.Capabilities.Networked && s.Network != nil && s.Network.Spec.Backend.Simulated != nil:
		p.WaitFor(reasonNoNetwork, "LocalMachine %s needs a container network, but LocalCluster %s is simulated: create the machine from a template with spec.template.spec.backend.simulated",
			s.Object.Name, s.Network.Name).For(kind, s.Object.Name).UntilUserActs()
	case s.Cluster == nil || s.Capabilities.Networked && s.Network == nil ||
		!ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false):
		p.WaitFor(reasonInfrastructure, "Waiting for the cluster's infrastructure (LocalCluster) to be provisioned").
			For("Cluster", s.clusterName()).ToChange("status.initialization.infrastructureProvisioned")
	case s.bootstrapSecretName() == "" && !s.Capabilities.Scripted:
		waitForData(s, p)
	case s.Capabilities.MissingSetting != "":
		p.WaitFor(reasonNoImage, "%s", s.Capabilities.MissingSetting).For(kind, s.Object.Name).UntilUserActs()
	case s.versionSkew() != "":
		waitForVersion(s, p)
	case s.Capabilities.Denied != "":
		p.WaitFor(reasonDenied, "%s", s.Capabilities.Denied).For(kind, s.Object.Name).UntilUserActs()
	case s.Quota == nil:
		p.Reads = append(p.Reads, checkQuota{})
	case s.Quota.Refusal != nil:
		p.WaitFor(s.Quota.Refusal.Reason, "%s", s.Quota.Refusal.Message).For(kind, s.Object.Name).UntilUserActs()
		if !s.Capabilities.Immediate { // otherwise only a change of the object can change the result
			p.RecheckIn(lostEventRecheck)
		}
	case s.quotaDenial() != "":
		p.WaitFor(reasonDenied, "%s", s.quotaDenial()).For(kind, s.Object.Name).UntilUserActs()
		p.RecheckIn(quotaRecheck)
	default:
		decideCreation(s, p, "there is none yet")
	}
}

// decideCreation creates and starts the machine.
func decideCreation(s snapshot, p *reconciler.Plan, why string) {
	decideID(s, p)
	p.Do(createMachine{Name: s.Name, Image: s.Capabilities.Image, Startup: s.startup(), Why: why})
	switch {
	case s.startup() > 0:
		waitForStart(s, p, s.startup())
	default:
		waitForRunning(s, p, reasonCreating, "The machine "+s.Name+" is being created")
	}
}

// quotaDenial returns the reason why the policy denies the machine in the current state of the host, empty if it does
// not. It is checked only before a machine is created: an existing machine continues to run when the policy becomes
// stricter.
func (s snapshot) quotaDenial() string {
	for _, m := range s.Quota.Mounts {
		if why := s.Policy.DeniedMount(s.Object.Namespace, m.HostPath, m.ReadOnly); why != "" {
			return why
		}
	}
	return s.Capabilities.Maximum.Exceeded(s.Capabilities.MaximumSetting, s.Object.Namespace, s.Quota.Own, s.Quota.All)
}

func decideID(s snapshot, p *reconciler.Plan) {
	if s.Object.Spec.ProviderID == "" {
		p.Do(setProviderID{ID: backend.ProviderID(s.Name)})
	}
}

// decideRunning runs the bootstrap data of a scripted machine.
func decideRunning(s snapshot, p *reconciler.Plan) {
	switch {
	case !s.Capabilities.Scripted:
		decideChanges(s, p)
	case s.Progress == nil:
		p.Reads = append(p.Reads, readProgress{Name: s.Name})
	default:
		decideBootstrap(s, p)
	}
}

// decideStart starts an existing machine, or waits until it has started by itself.
func decideStart(s snapshot, p *reconciler.Plan) {
	if left := s.HostMachine.Since.Add(s.startup()).Sub(s.Now); left > 0 {
		waitForStart(s, p, left)
		return
	}
	p.Do(createMachine{Name: s.Name, Image: s.Capabilities.Image, Why: "it exists and does not run"})
	text := "The machine " + s.Name + " is being started"
	if s.HostMachine.Detail != "" {
		text = fmt.Sprintf("The machine %s stopped (%s) and is being restarted; if it stops every time, its image %s is not a node image: see slipway image list",
			s.Name, s.HostMachine.Detail, s.Capabilities.Image)
	}
	waitForRunning(s, p, reasonRestarting, text)
}

// startup returns the duration of the machine's start. A lost machine is recreated without delay.
func (s snapshot) startup() time.Duration {
	if s.provisioned() {
		return 0
	}
	return s.Capabilities.Startup
}

func decideBootstrap(s snapshot, p *reconciler.Plan) {
	switch s.Progress.Phase {
	case backend.NotStarted:
		if s.bootstrapSecretName() == "" {
			waitForData(s, p)
			return
		}
		if s.versionSkew() != "" {
			waitForVersion(s, p)
			return
		}
		p.Do(runBootstrap{Name: s.Name, Secret: s.bootstrapSecretName()})
		waitForBackend(s, p, reasonBootstrapping, "The bootstrap data runs in machine "+s.Name)
	case backend.InProgress:
		waitForBackend(s, p, reasonBootstrapping, s.bootstrapping())
	case backend.Interrupted:
		p.Do(deleteMachine{Name: s.Name, Why: "a restart interrupted its bootstrap, so it is recreated"})
		waitForResult(s, p, reasonInterrupted, "A restart interrupted the bootstrap: the machine is being recreated")
	case backend.Unusable:
		p.WaitFor(reasonUnusable, "%s", s.Progress.Log).For(kind, s.Object.Name).UntilUserActs()
	case backend.Failed:
		p.WaitFor(reasonFailed, "The bootstrap data failed in machine %s", s.Name).For(kind, s.Object.Name).UntilUserActs()
		if s.mayLearnReason() {
			p.RecheckIn(serverRecheck)
		}
	}
}

// mayLearnReason reports whether the reason of a failed bootstrap may become known: the exit of the kube-apiserver of a
// control plane machine that failed a short time ago.
func (s snapshot) mayLearnReason() bool {
	if s.Progress.Kubelet != "" || s.Progress.APIServer != "" || s.Machine == nil {
		return false
	}
	if _, isControlPlane := s.Machine.Labels[clusterv1.MachineControlPlaneLabel]; !isControlPlane {
		return false
	}
	c := condition.Set(s.Object.Status.Conditions).Get(infrav1.BootstrapExecSucceededCondition)
	return c == nil || c.Reason != reasonFailed || s.Now.Sub(c.LastTransitionTime.Time) < serverTime
}

// waitForVersion waits until the control plane supports the Kubernetes version of the node.
func waitForVersion(s snapshot, p *reconciler.Plan) {
	p.WaitFor(reasonSkew, "The node image has Kubernetes %s, which is %s HostedControlPlane %s at %s: "+
		"use a version that the control plane supports, or upgrade the control plane first", s.nodeVersion(), s.versionSkew(), s.HostedControlPlane.Name, s.HostedControlPlane.Status.Version).
		For("HostedControlPlane", s.HostedControlPlane.Name).ToChange("status.version")
	// The event is missing if the kind was installed after the start, or if the object has the label of another Cluster.
	p.RecheckIn(versionRecheck)
}

// isStale reports whether the machine of this name belongs to an earlier object that no longer exists. After a move or
// a restore the object's UID differs, too, but then the object has a provider ID.
func (s snapshot) isStale() bool {
	return s.HostMachine.State.Exists() && s.Object.Spec.ProviderID == "" && s.HostMachine.Owner.UID != s.Object.UID
}

// waitForBackend waits for an event of the backend.
func waitForBackend(s snapshot, p *reconciler.Plan, reason, message string) {
	p.WaitFor(reason, "%s", message).For(kind, s.Object.Name).ToChange("condition " + infrav1.MachineProvisionedCondition)
	p.RecheckIn(lostEventRecheck)
}

// waitForResult waits for the effect of the plan's actions on the machine.
func waitForResult(s snapshot, p *reconciler.Plan, reason, message string) {
	if s.Capabilities.Immediate {
		p.RecheckIn(immediateRecheck)
		return
	}
	waitForBackend(s, p, reason, message)
}

// waitForRunning waits for a machine that the plan starts.
func waitForRunning(s snapshot, p *reconciler.Plan, reason, message string) {
	switch {
	case !s.Capabilities.Immediate:
		waitForBackend(s, p, reason, message)
	case s.Capabilities.Scripted:
		p.RecheckIn(immediateRecheck)
	default:
		p.RecheckIn(s.Capabilities.ChangesAfter)
	}
}

// waitForData waits for the bootstrap data Secret.
func waitForData(s snapshot, p *reconciler.Plan) {
	on, bootstrap := reconciler.Subject{}, clusterv1.Bootstrap{}
	switch {
	case s.Machine != nil:
		on, bootstrap = reconciler.Subject{Kind: "Machine", Name: s.Machine.Name}, s.Machine.Spec.Bootstrap
	case s.Pool != nil:
		on, bootstrap = reconciler.Subject{Kind: "MachinePool", Name: s.Pool.Name}, s.Pool.Spec.Template.Spec.Bootstrap
	}
	if s.Cluster == nil {
		on = reconciler.Subject{Kind: "Cluster", Name: s.clusterName()}
	}
	infrastructure.WaitForBootstrapData(p, on, s.Cluster, bootstrap)
}

// waitForStart waits for a machine whose startup duration is known.
func waitForStart(s snapshot, p *reconciler.Plan, left time.Duration) {
	p.WaitFor(reasonStarting, "The machine is starting, which takes %s", s.startup()).For(kind, s.Object.Name).ForTime()
	p.RecheckIn(left)
}
