package machine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// retryFailed is the interval for retrying if no extension can be called.
const retryFailed = 30 * time.Second

// inPlaceUpdate is the input of decisions about the in-place update of a Machine. The owner of the Machine starts the
// update (package inplace); this file calls the extension until it is done, and then removes the annotations. [decide],
// act and the Updating condition use it.
type inPlaceUpdate struct {
	Machine *clusterv1.Machine
	// Infrastructure and Bootstrap are the objects that the Machine references.
	Infrastructure, Bootstrap reference.Link
	// Enabled is set if the feature gate is enabled.
	Enabled bool
	// Progress is the response of the extension, or nil if it was not called yet.
	Progress *inplace.Progress
}

// The actions of an in-place update. Each may be repeated.
type (
	// inPlaceFinish removes the update-in-progress annotation of the Machine. The annotations of its objects are
	// removed next.
	inPlaceFinish struct{ Handler string }
	// inPlaceUnmark removes the update-in-progress annotation of a referenced object.
	inPlaceUnmark struct{ Kind, Name string }
	// removeHook removes the pending hook, which completes the update. The hook is an entry of an annotation of the
	// Machine, which its owner writes when the update begins.
	removeHook struct{}
)

// askProgress requests a call of the extension. The Read function of the controller (drain.go) performs the call.
type askProgress struct{}

func (askProgress) String() string { return "how far the extension is with the in-place update" }

func (a inPlaceFinish) String() string {
	return "end the in-place update: handler " + a.Handler + " is done"
}
func (a inPlaceUnmark) String() string {
	return fmt.Sprintf("unmark %s %s: its Machine is not updating in place any more", a.Kind, a.Name)
}
func (removeHook) String() string {
	return "remove the pending hook " + inplace.Hook + ": the Machine is not updating in place any more"
}

// Decide adds the update of a Machine that is not being deleted to its plan.
func (u inPlaceUpdate) Decide(p *reconciler.Plan) {
	switch inplace.StateOf(u.Machine) {
	case inplace.None:
	case inplace.Ending:
		for _, l := range u.marked() {
			p.Do(inPlaceUnmark{Kind: l.Ref.Kind, Name: l.Ref.Name})
		}
		p.Do(removeHook{})
	case inplace.Updating:
		u.decideProgress(p)
	default:
		s := u.situation()
		p.WaitFor(waitOwner, "%s", s.message).For("Machine", u.Machine.Name).ToChange("metadata.annotations")
	}
}

// Reasons of waits for an in-place update.
const (
	waitOwner     = "WaitingForInPlaceTrigger"
	waitReady     = "WaitingForInPlacePreconditions"
	waitExtension = "WaitingForInPlaceUpdate"
)

func (u inPlaceUpdate) decideProgress(p *reconciler.Plan) {
	if b := u.blocked(); b.message != "" {
		w := p.WaitFor(waitReady, "%s", b.message).For(b.kind, b.name)
		if b.needsUser {
			w.UntilUserActs()
		} else {
			w.ToChange(b.field)
		}
		return
	}
	switch progress := u.Progress; {
	case progress == nil:
		p.Reads = append(p.Reads, askProgress{})
	case progress.Done:
		p.Do(inPlaceFinish{Handler: progress.Handler})
	case progress.CallAfter > 0:
		p.WaitFor(waitExtension, "%s", u.situation().message).For("Machine", u.Machine.Name).ForTime()
		p.RecheckIn(progress.CallAfter)
	case progress.Problem != nil:
		p.WaitFor(waitExtension, "%s", u.situation().message).For("Machine", u.Machine.Name).ForTime()
		p.RecheckIn(cmp.Or(progress.Retry, retryFailed))
	default:
		p.WaitFor(waitExtension, "%s", u.situation().message).For("Machine", u.Machine.Name).ForTime()
		p.RecheckIn(progress.Retry)
	}
}

// updateBlocker is a change that is needed before the extension can be called.
type updateBlocker struct {
	message, kind, name, field string
	// needsUser is set if a user has to act, failed if the update cannot succeed until then.
	needsUser, failed bool
}

// blocked returns the obstacle that prevents a call of the extension, or the zero value if there is none.
func (u inPlaceUpdate) blocked() updateBlocker {
	m := u.Machine
	machine := func(message, field string) updateBlocker {
		return updateBlocker{message: message, kind: "Machine", name: m.Name, field: field}
	}
	switch infra := u.Infrastructure; {
	case !u.Enabled:
		o := machine("The feature gate InPlaceUpdates is off: turn it on again, or delete the Machine", "")
		o.needsUser = true
		return o
	case infra.Presence() == contract.Missing:
		return updateBlocker{message: infra.String() + " does not exist: restore it, or delete the Machine", kind: infra.Ref.Kind, name: infra.Ref.Name, needsUser: true, failed: true}
	case infra.Presence() != contract.Found:
		return updateBlocker{message: infra.String() + " cannot be read: " + infra.Problem(), kind: infra.Ref.Kind, name: infra.Ref.Name, needsUser: true, failed: true}
	case !ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false):
		return machine("Waiting for the infrastructure to be provisioned", "status.initialization.infrastructureProvisioned")
	case m.Spec.Bootstrap.DataSecretName == nil:
		return machine("Waiting for the bootstrap data Secret to be created", "spec.bootstrap.dataSecretName")
	case !m.Status.NodeRef.IsDefined():
		return machine("Waiting for the Node to be found", "status.nodeRef")
	}
	for _, l := range u.links() {
		if l.Presence() == contract.Found && !inplace.IsMarked(l.Object().Unstructured) {
			return updateBlocker{message: fmt.Sprintf("Waiting for %s to be written by the owner of the Machine", l), kind: l.Ref.Kind, name: l.Ref.Name, field: "metadata.annotations"}
		}
	}
	return updateBlocker{}
}

// links returns the objects that the Machine references. The bootstrap config is no longer needed and may be
// missing.
func (u inPlaceUpdate) links() []reference.Link {
	return []reference.Link{u.Infrastructure, u.Bootstrap}
}

func (u inPlaceUpdate) marked() []reference.Link {
	var out []reference.Link
	for _, l := range u.links() {
		if l.Presence() == contract.Found && inplace.IsMarked(l.Object().Unstructured) {
			out = append(out, l)
		}
	}
	return out
}

// updatingState is a reason and message of the Updating condition.
type updatingState struct{ reason, message string }

// situation returns the reason and message of the Updating condition for a Machine with an update.
func (u inPlaceUpdate) situation() updatingState {
	const updating, failed = clusterv1.MachineInPlaceUpdatingReason, clusterv1.MachineInPlaceUpdateFailedReason
	switch inplace.StateOf(u.Machine) {
	case inplace.Moving:
		return updatingState{updating, "Waiting for the MachineDeployment to acknowledge the Machine in its MachineSet"}
	case inplace.Triggering:
		return updatingState{updating, "Waiting for the owner of the Machine to write its desired state"}
	}
	if b := u.blocked(); b.message != "" {
		if b.failed {
			return updatingState{failed, "In-place update cannot be made: " + b.message}
		}
		return updatingState{updating, b.message}
	}
	switch p := u.Progress; {
	case p == nil, p.Done:
		return updatingState{updating, "In-place update in progress"}
	case p.CallAfter > 0:
		return updatingState{updating, "Waiting for the extension to be callable"}
	case p.Problem != nil:
		return updatingState{failed, "In-place update failed: " + fault.UserMessage(p.Problem) + "; retrying"}
	case p.Message == "":
		return updatingState{updating, fmt.Sprintf("In-place update in progress: handler %s has more to do", p.Handler)}
	default:
		return updatingState{updating, "In-place update in progress: " + p.Message}
	}
}

// Verdict computes the Updating condition of a Machine. It is False while the Machine is being deleted. The row of the
// condition (conditions.go) calls it.
func (u inPlaceUpdate) Verdict() condition.Result {
	if !inplace.IsMarked(u.Machine) || !u.Machine.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.MachineNotUpdatingReason, "")
	}
	s := u.situation()
	return condition.TrueBecause(s.reason, s.message)
}

// callExtension calls the extension, when Decide requests it. The Read function of the controller (drain.go) calls it.
func (u inPlaceUpdate) callExtension(ctx context.Context, c inplace.Caller) (*inplace.Progress, error) {
	desired := inplace.Machine{Machine: u.Machine, Infrastructure: u.Infrastructure.Object().Unstructured}
	if u.Bootstrap.Presence() == contract.Found {
		desired.Bootstrap = u.Bootstrap.Object().Unstructured
	}
	progress, err := c.UpdateMachine(ctx, desired)
	return &progress, err
}

// Act runs an action of an in-place update. It returns false for any other action. act (act.go) calls it first.
func (u inPlaceUpdate) Act(ctx context.Context, w *kube.Writer, action reconciler.Action) (bool, error) {
	unmark := func(o client.Object) { kube.Annotate(o, clusterv1.UpdateInProgressAnnotation, nil) }
	switch a := action.(type) {
	case inPlaceFinish:
		return true, w.Patch(ctx, u.Machine, unmark)
	case removeHook:
		return true, w.Patch(ctx, u.Machine, func(o client.Object) { kube.Annotate(o, runtimev1.PendingHooksAnnotation, inplace.WithoutHook(o)) })
	case inPlaceUnmark:
		for _, l := range u.marked() {
			if l.Ref.Kind == a.Kind && l.Ref.Name == a.Name {
				return true, w.Patch(ctx, l.Object().Unstructured, unmark)
			}
		}
		return true, fault.New(fault.Bug, "UnknownAction", "there is no mark to %s", action)
	}
	return false, nil
}
