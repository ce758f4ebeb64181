package machines

import (
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Events returns one event for each action that created or deleted Machines. The MachineSet and KubeadmControlPlane
// controllers add them to their report of a reconciliation.
func Events(out reconciler.Outcome) []reconciler.Event {
	var events []reconciler.Event
	for _, action := range out.Done {
		switch a := action.(type) {
		case CreateMachines:
			events = append(events, reconciler.Normal("SuccessfulCreate", "Created %s: %s", NamesText(a.Names), a.Why))
		case DeleteMachines:
			events = append(events, reconciler.Normal("SuccessfulDelete", "Deleted %s: %s", NamesText(a.Names), a.Why))
		}
	}
	switch a := out.Failed.(type) {
	case CreateMachines:
		events = append(events, reconciler.Warning("FailedCreate", "%s", FailureText("Machines could not be created", out, a.Names...)))
	case DeleteMachines:
		events = append(events, reconciler.Warning("FailedDelete", "%s", FailureText(NamesText(a.Names)+" could not all be deleted", out)))
	}
	return events
}

// CreationFailure returns why Machines could not be created, or an empty string, for the conditions of a MachineSet. A
// message that requires an action of a user is returned unchanged.
func CreationFailure(out reconciler.Outcome) string {
	a, failed := out.Failed.(CreateMachines)
	if !failed {
		return ""
	}
	if f := fault.As(out.Err); f != nil && f.Kind == fault.Invalid {
		return f.Message
	}
	return FailureText("Machines could not be created", out, a.Names...)
}

// FailureText returns the message for a failed action. It omits the given names of Machines that do not exist,
// because the names of new Machines differ on every attempt. Conditions and events of the owners contain it.
func FailureText(what string, out reconciler.Outcome, names ...string) string {
	return what + ": " + strings.Join(kube.FailureMessages(out.Err, names...), "; ") + "; retrying"
}
