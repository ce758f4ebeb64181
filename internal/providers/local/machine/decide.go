package machine

import (
	"fmt"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// Reasons of waits and conditions.
const (
	reasonOwner          = "WaitingForOwner"
	reasonInfrastructure = "WaitingForClusterInfrastructureReady"
	reasonBootstrapData  = "WaitingForBootstrapData"
	reasonNoImage        = "NodeImageUnknown"
	reasonCreating       = "CreatingContainer"
	reasonRestarting     = "WaitingForContainer"
	reasonBootstrapping  = "Bootstrapping"
	reasonFailed         = "BootstrapFailed"
	reasonInterrupted    = "BootstrapInterrupted"
	reasonForeignID      = "ForeignProviderID"
	reasonForeign        = "ContainerNotOwned"
	reasonDenied         = "DeniedByPolicy"
	reasonUnusable       = "NotANodeImage"
	reasonLacking        = "NodeImageLacksImages"
)

// fallback is when to look again after the host was asked for something, should its event be lost.
const fallback = 10 * time.Second

// roomAgain is when to count again where there are as many containers as are allowed.
const roomAgain = 30 * time.Second

// Decide makes a plan of the snapshot.
func Decide(s Snapshot) loop.Plan {
	var p loop.Plan
	switch {
	case s.Name == "":
		decideForeignID(s, &p)
	case s.simulated():
		decideSimulated(s, &p)
	case s.Fault != nil:
		p.WaitFor(s.Fault.Reason, "%s", s.Fault.Message)
		if s.Fault.Kind != fault.Unreachable { // else the hub tells when the host answers
			p.RecheckIn(fallback)
		}
	case !s.Object.DeletionTimestamp.IsZero():
		decideDeletion(s, &p)
	case s.provisioned():
		// What happens to the container from now on is reported, not repaired.
	case s.Host.State == backend.Foreign:
		wait(&p, reasonForeign, "%s on this host has the name of this machine's container and belongs to something else (label %s): "+
			"nothing is done to it; remove it if it is not needed", s.Name, backend.LabelObject)
	case s.stale():
		p.Do(DeleteContainer{Name: s.Name, Why: "it belongs to an earlier LocalMachine of this name"})
		wait(&p, reasonCreating, "an old container of this name is being removed")
	case s.Host.State.Exists():
		decideExisting(s, &p)
	default:
		decideNew(s, &p)
	}
	return p
}

// decideForeignID leaves a machine alone that was created with a provider ID of another one: there is nothing that it
// could have, and nothing to remove.
func decideForeignID(s Snapshot, p *loop.Plan) {
	if s.Object.DeletionTimestamp.IsZero() {
		p.WaitFor(reasonForeignID, "spec.providerID is not one that LocalMachine %s can have: delete it, and create it without "+
			"spec.providerID, which its controller sets", s.Object.Name)
	}
}

func decideDeletion(s Snapshot, p *loop.Plan) {
	switch s.Host.State {
	case backend.Absent, backend.Foreign:
	case backend.Removing:
		wait(p, "RemovingContainer", "container %s is being removed", s.Name)
	default:
		p.Do(DeleteContainer{Name: s.Name, Why: "the LocalMachine is being deleted"})
		wait(p, "RemovingContainer", "container %s is being removed", s.Name)
	}
}

// decideNew makes the container once everything it needs is known (IM-11).
func decideNew(s Snapshot, p *loop.Plan) {
	switch {
	case s.Machine == nil && s.Pool == nil:
		p.WaitFor(reasonOwner, "waiting for a Machine or a MachinePool to own this object")
	case s.Cluster == nil || s.Network == nil ||
		!isTrue(s.Cluster.Status.Initialization.InfrastructureProvisioned):
		p.WaitFor(reasonInfrastructure, "waiting for the cluster's infrastructure (LocalCluster) to be provisioned")
	case s.secret() == "":
		p.WaitFor(reasonBootstrapData, "%s", s.waitingForData())
	case s.image() == "":
		p.WaitFor(reasonNoImage, "which node image to use is unknown: set spec.version of the Machine (or MachinePool), or spec.backend.container.image")
	case s.lacking() != "":
		waitForImage(s, p)
	case s.deniedUnseen() != "":
		p.WaitFor(reasonDenied, "%s", s.deniedUnseen())
	case s.Room == nil:
		p.Ask = append(p.Ask, AskRoom{})
	case s.Room.Refused != nil:
		wait(p, s.Room.Refused.Reason, "%s", s.Room.Refused.Message)
	case s.deniedRoom() != "":
		p.WaitFor(reasonDenied, "%s", s.deniedRoom())
		p.RecheckIn(roomAgain)
	default:
		decideID(s, p)
		p.Do(Create{Name: s.Name, Image: s.image(), Why: "the machine has none yet"})
		wait(p, reasonCreating, "container %s is being made", s.Name)
	}
}

func decideExisting(s Snapshot, p *loop.Plan) {
	if s.Host.State == backend.Removing {
		wait(p, reasonCreating, "a container of this name is being removed")
		return
	}
	if s.Host.State != backend.Running {
		decideID(s, p)
		p.Do(Create{Name: s.Name, Image: s.image(), Why: "it exists and does not run"})
		wait(p, reasonRestarting, "container %s is being started", s.Name)
		return
	}
	decideID(s, p)
	if s.Progress == nil {
		p.Ask = append(p.Ask, AskProgress{Name: s.Name})
		return
	}
	decideBootstrap(s, p)
}

func decideBootstrap(s Snapshot, p *loop.Plan) {
	switch s.Progress.Phase {
	case backend.NotStarted:
		if s.secret() == "" {
			p.WaitFor(reasonBootstrapData, "%s", s.waitingForData())
			return
		}
		if s.lacking() != "" {
			waitForImage(s, p)
			return
		}
		p.Do(Bootstrap{Name: s.Name, Secret: s.secret()})
		wait(p, reasonBootstrapping, "the bootstrap data runs inside container %s", s.Name)
	case backend.InProgress:
		wait(p, reasonBootstrapping, "the bootstrap data runs inside container %s", s.Name)
	case backend.Interrupted:
		p.Do(DeleteContainer{Name: s.Name, Why: "a restart interrupted its bootstrap, so it is made anew"})
		wait(p, reasonInterrupted, "a restart interrupted the bootstrap: the container is made anew")
	case backend.Unusable:
		p.WaitFor(reasonUnusable, "%s", s.Progress.Log)
	case backend.Failed:
		p.WaitFor(reasonFailed, "the bootstrap data failed inside container %s", s.Name)
	}
}

// waitForImage keeps a machine from becoming a Node on which no Service would work.
func waitForImage(s Snapshot, p *loop.Plan) {
	p.WaitFor(reasonLacking, "Node image %s lacks %s, which HostedControlPlane %s runs on every node, so no Service and no name would "+
		"work there: use version %s for the machines too", s.nodeVersion(), s.lacking(), s.Plane.Name, s.Plane.Status.Version)
	p.RecheckIn(roomAgain)
}

// stale reports whether the container of this name belongs to an object that is gone. After a move or a restore the
// object has another UID than the container says, but then it knows its provider ID.
func (s Snapshot) stale() bool {
	return s.Host.State.Exists() && s.Object.Spec.ProviderID == "" && s.Host.Owner.UID != s.Object.UID
}

// wait waits for an event of the host.
func wait(p *loop.Plan, reason, message string, args ...any) {
	p.WaitFor(reason, message, args...)
	p.RecheckIn(fallback)
}

func isTrue(b *bool) bool { return b != nil && *b }

// AskRoom asks what a new container can have of the host.
type AskRoom struct{}

func (AskRoom) String() string { return "what a new container can have of the host" }

// AskProgress asks how far the bootstrap has come.
type AskProgress struct{ Name string }

func (a AskProgress) String() string { return "how far the bootstrap of " + a.Name + " has come" }

// Create makes and starts the container.
type Create struct{ Name, Image, Why string }

func (a Create) String() string {
	return fmt.Sprintf("make and start container %s of %s: %s", a.Name, a.Image, a.Why)
}

// SetProviderID writes the provider ID and the finalizer. It comes before anything is made on the host: the ID follows
// from the name, and only what is made needs the finalizer.
type SetProviderID struct{ ID string }

func (a SetProviderID) String() string {
	return fmt.Sprintf("set the provider ID to %s: this is the machine", a.ID)
}

// Bootstrap runs the bootstrap data in the container.
type Bootstrap struct{ Name, Secret string }

func (a Bootstrap) String() string {
	return fmt.Sprintf("run the bootstrap data of Secret %s in container %s: it runs and was not bootstrapped", a.Secret, a.Name)
}

// DeleteContainer removes the container and its data.
type DeleteContainer struct{ Name, Why string }

func (a DeleteContainer) String() string {
	return fmt.Sprintf("remove container %s: %s", a.Name, a.Why)
}
