package machines

import (
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
)

// Events tell which Machines were created and deleted, one event for all of an action.
func Events(out loop.Outcome) []loop.Event {
	var events []loop.Event
	for _, action := range out.Done {
		switch a := action.(type) {
		case Create:
			events = append(events, loop.Normal("SuccessfulCreate", "Created %s: %s", NamesText(a.Names), a.Why))
		case Delete:
			events = append(events, loop.Normal("SuccessfulDelete", "Deleted %s: %s", NamesText(a.Names), a.Why))
		}
	}
	switch a := out.Failed.(type) {
	case Create:
		events = append(events, loop.Warning("FailedCreate", "%s", FailureText("Machines could not be created", out, a.Names...)))
	case Delete:
		events = append(events, loop.Warning("FailedDelete", "%s", FailureText(NamesText(a.Names)+" could not all be deleted", out)))
	}
	return events
}

// CreationFailure says why Machines could not be created; empty: they could. What a person has to change is said as it is.
func CreationFailure(out loop.Outcome) string {
	a, failed := out.Failed.(Create)
	if !failed {
		return ""
	}
	if f := fault.As(out.Err); f != nil && f.Kind == fault.Invalid {
		return f.Message
	}
	return FailureText("Machines could not be created", out, a.Names...)
}

// FailureText says why an action failed, without the names of Machines that do not exist: those of new ones change each time.
func FailureText(what string, out loop.Outcome, names ...string) string {
	return what + ": " + strings.Join(kube.Refusals(out.Err, names...), "; ") + "; retrying"
}
