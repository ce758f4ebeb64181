package plan

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// writePlans prints plans as text, one paragraph for each controller. `slipway explain` shows them below the chain. If there
// is a chain, idle controllers are named in one line, because they do not explain it.
func (s explanation) writePlans(b *strings.Builder) {
	var idle []string
	for _, r := range s.ObjectPlans.Plans {
		if s.Chain != nil && isIdle(r) {
			idle = append(idle, r.Controller)
			continue
		}
		fmt.Fprintf(b, "\n%s, reconciled %s ago by controller %s\n", s.title(), duration.HumanDuration(max(0, s.now.Sub(r.Time))), r.Controller)
		s.writeRecord(b, r)
	}
	if len(idle) > 0 {
		fmt.Fprintf(b, "\nControllers with nothing to do and nothing to wait for: %s\n", strings.Join(idle, ", "))
	}
}

// isIdle reports whether a controller had nothing to do and waits for nothing.
func isIdle(r manager.PlanRecord) bool { return len(r.Actions)+len(r.Waits)+len(r.Errors) == 0 }

// title returns the kind and the key of the object. explain_chain.go prints it, too.
func (s explanation) title() string { return s.ref.Qualified() }

// writeRecord prints the result of one controller.
func (s explanation) writeRecord(b *strings.Builder, r manager.PlanRecord) {
	if isIdle(r) {
		b.WriteString("\nThere was nothing to do and nothing to wait for.\n")
	}
	writeSection(b, "Actions of that reconciliation", r.Actions)
	writeSection(b, "It did not succeed", r.Errors)
	if len(r.Waits) > 0 {
		b.WriteString("\nWaits\n")
	}
	for _, wait := range r.Waits {
		fmt.Fprintf(b, "  %s%s\n    %s\n    %s\n", wait.Reason, since(wait.Since, s.now), quote(firstLines(wait.Message, maxRootLines), "    "), waitEnd(wait))
	}
	if r.Recheck != "" {
		fmt.Fprintf(b, "\n%s\n", nextReconciliation(r.Recheck))
	}
}

// nextReconciliation formats the time of the next reconciliation. Long intervals are rounded.
func nextReconciliation(recheck string) string {
	after, err := time.ParseDuration(recheck)
	switch {
	case err != nil:
	case after > day:
		return fmt.Sprintf("The next reconciliation comes with the next event, or else in %s.", duration.HumanDuration(after))
	case after >= time.Second:
		recheck = after.Round(time.Second).String()
	default:
		recheck = max(after.Round(10*time.Millisecond), 10*time.Millisecond).String()
	}
	return fmt.Sprintf("The next reconciliation comes %s after that one, or with the next event.", recheck)
}

const day = 24 * time.Hour

func writeSection(b *strings.Builder, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n%s\n", title)
	}
	for _, line := range lines {
		fmt.Fprintf(b, "  %s\n", quote(line, "  "))
	}
}

// waitEnd describes what ends a wait. The ui command uses it, too.
func waitEnd(w reconciler.Wait) string {
	var names []string
	for _, on := range w.On {
		name := on.Kind + " " + on.Name
		if on.Namespace != "" {
			name = on.Kind + " " + on.Namespace + "/" + on.Name
		}
		names = append(names, name)
	}
	on := strings.Join(names, ", ")
	switch {
	case on == "" && w.Until == reconciler.UntilTime:
		return "Ends without an action"
	case on == "" && w.Until == reconciler.UntilUser:
		return "Ends when a user acts"
	case on == "":
		return "Ends with the next event of the object"
	case w.Until == reconciler.UntilTime:
		return "Ends without an action; concerns " + on
	case w.Until == reconciler.UntilUser:
		return "Ends when a user acts on " + on
	case w.Field == "":
		return "Ends when it is created, or deleted: " + on
	}
	return fmt.Sprintf("Ends when %s changes: %s", w.Field, on)
}
