package plan

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// explanation contains the plans of an object, and the flags that select its management cluster in printed commands.
// "explain" prints it.
type explanation struct {
	manager.ObjectPlans
	repeatFlags string
}

// writeExplanation prints plans as text, one paragraph for each controller.
func writeExplanation(w io.Writer, s explanation, now time.Time) error {
	var b strings.Builder
	name := s.Name
	if s.Namespace != "" {
		name = s.Namespace + "/" + name
	}
	for i, r := range s.ObjectPlans.Plans {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s %s, reconciled %s ago by controller %s\n", s.Kind, name, duration.HumanDuration(now.Sub(r.Time)), r.Controller)
		writeRecord(&b, s, r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeRecord prints the result of one controller.
func writeRecord(b *strings.Builder, s explanation, r manager.PlanRecord) {
	if len(r.Actions)+len(r.Waits)+len(r.Errors) == 0 {
		b.WriteString("\n" + s.idle() + "\n")
	}
	writeSection(b, "Actions of that reconciliation", r.Actions)
	writeSection(b, "It did not succeed", r.Errors)
	if len(r.Waits) > 0 {
		b.WriteString("\nWaits\n")
	}
	for _, wait := range r.Waits {
		fmt.Fprintf(b, "  %s\n    %s\n    %s\n", wait.Reason, indent(wait.Message, "    "), waitEnd(wait))
	}
	if r.Recheck != "" {
		fmt.Fprintf(b, "\n%s\n", nextReconciliation(r.Recheck))
	}
}

// idle returns the text for an object without actions and waits. The state of a Cluster depends on the objects below
// it.
func (s explanation) idle() string {
	if s.Kind == clusterv1.ClusterKind {
		return fmt.Sprintf("This controller waits for nothing. What the objects beneath the Cluster wait for: slipway describe cluster %s -n %s%s", s.Name, s.Namespace, s.repeatFlags)
	}
	return "There was nothing to do and nothing to wait for."
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
		fmt.Fprintf(b, "  %s\n", indent(line, "  "))
	}
}

func indent(text, by string) string { return strings.ReplaceAll(text, "\n", "\n"+by) }

// waitEnd describes what ends a wait.
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
	case w.Until == reconciler.UntilTime:
		return "Ends with time; it is about " + on
	case w.Until == reconciler.UntilUser:
		return "Ends when a user acts on " + on
	case w.Field == "":
		return "Ends when it is created, or deleted: " + on
	}
	return fmt.Sprintf("Ends when %s changes: %s", w.Field, on)
}
