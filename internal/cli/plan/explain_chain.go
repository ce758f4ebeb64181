package plan

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slipwayhq/slipway/internal/rootcause"
)

// writeExplanation prints the chain of an object, the plans for it, and what happens without a user. `slipway explain
// KIND/NAME` calls it unless -o is set. A chain leads from the object over other objects to the root cause.
func writeExplanation(w io.Writer, s explanation) error {
	var b strings.Builder
	writeProcess(&b, s.Process, s.now)
	if s.Chain == nil {
		fmt.Fprintf(&b, "%s is as it should be.\n", s.title())
	} else {
		s.writeChain(&b)
	}
	writeOthers(&b, s.Others, s.now)
	s.writePlans(&b)
	s.writeUpcoming(&b)
	writeRemarks(&b, remarks{s.PlansMissing, s.Unreadable, s.Limits, s.Chain != nil && !s.Chain.Plans})
	_, err := io.WriteString(w, b.String())
	return err
}

// writeProcess prints the problem of the processes of the management cluster, above everything else.
func writeProcess(b *strings.Builder, c *chain, now time.Time) {
	if c == nil {
		return
	}
	root := c.Root()
	fmt.Fprintf(b, "The management cluster is not as it should be\n\n  %s%s\n    %s\n\n", root.Object, since(root.Since, now), quote(root.Message, "    "))
	writeRemedy(b, c.Remedy, "")
	b.WriteString("\n")
}

// writeChain prints the links of the chain and the remedy.
func (s explanation) writeChain(b *strings.Builder) {
	state := "is not as it should be"
	switch {
	case s.Chain.IsWarning():
		state = "is as it should be, with a warning"
	case !s.Chain.NeedsUser:
		state += ", but no action is needed"
	}
	fmt.Fprintf(b, "%s %s\n\n", s.title(), state)
	for i, l := range s.Chain.Links {
		lead, below := "  ", "    "
		if i > 0 {
			lead = "  " + strings.Repeat("  ", i-1) + "`-"
			below = "    " + strings.Repeat("  ", i)
		}
		fmt.Fprintf(b, "%s%s%s\n", lead, nameIn(l.Object, s.ref.Namespace), since(l.Since, s.now))
		most := maxLines
		if i == len(s.Chain.Links)-1 {
			most = maxRootLines
		}
		fmt.Fprintf(b, "%s%s\n", below, quote(firstLines(linkText(l), most), below))
	}
	b.WriteString("\n")
	writeRemedy(b, s.Chain.Remedy, "")
}

// linkText returns the condition, the reason and the message of a link.
func linkText(l rootcause.Link) string {
	text := cmp.Or(l.Message, l.Reason)
	if single, isItem := strings.CutPrefix(text, "* "); isItem && !strings.Contains(single, "\n") {
		text = single
	}
	if l.Type == "" || text == "" {
		return cmp.Or(text, l.Type)
	}
	return l.Type + ": " + text
}

// Numbers of lines of a message: of one that leads to another object, and of the root cause.
const (
	maxLines     = 3
	maxRootLines = 20
)

// firstLines returns the first lines of a text. explain_text.go uses it for messages of waits.
func firstLines(text string, most int) string {
	lines := strings.Split(text, "\n")
	if len(lines) <= most {
		return text
	}
	return strings.Join(append(lines[:most:most], "…"), "\n")
}

// quote marks the further lines of a message, so that a message of a tenant does not look like a remedy.
// explain_text.go calls it, too.
func quote(text, margin string) string {
	return strings.ReplaceAll(text, "\n", "\n"+margin+"| ")
}

// oneLine returns a text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// nameIn returns the name of an object, with its namespace if it is another one.
func nameIn(r rootcause.Ref, namespace string) string {
	if r.Namespace == namespace {
		return r.String()
	}
	return r.Qualified()
}

// since formats how long something has lasted, or nothing if that is unknown. explain_text.go uses it, too.
func since(at, now time.Time) string {
	if at.IsZero() || now.Before(at) {
		return ""
	}
	return ", since " + duration.HumanDuration(now.Sub(at))
}

// writeRemedy prints what to do, or what happens without a user.
func writeRemedy(b *strings.Builder, r rootcause.Remedy, margin string) {
	title := "What to do"
	if r.Automatic {
		title = "What happens next"
	}
	fmt.Fprintf(b, "%s%s\n%s  %s\n", margin, title, margin, oneLine(r.Text))
	if r.Command != "" && !r.Automatic {
		fmt.Fprintf(b, "%s    $ %s\n", margin, oneLine(r.Command))
	}
}

// writeOthers prints further root causes.
func writeOthers(b *strings.Builder, others []chain, now time.Time) {
	for i, c := range others {
		if i == 0 {
			b.WriteString("\nOther problems beneath it\n")
		}
		writeProblem(b, c, now, "  ")
	}
}

// writeProblem prints the root cause of a chain, what it affects and the remedy.
func writeProblem(b *strings.Builder, c chain, now time.Time, margin string) {
	root := c.Root()
	fmt.Fprintf(b, "%s%s%s\n", margin, root.Object.Qualified(), since(root.Since, now))
	fmt.Fprintf(b, "%s  %s\n", margin, quote(firstLines(linkText(root), maxRootLines), margin+"  "))
	if text := affectsText(c); text != "" {
		fmt.Fprintf(b, "%s  Affects %s\n", margin, text)
	}
	writeRemedy(b, c.Remedy, margin+"  ")
}

// maxAffected is the number of Clusters that are named as affected by one root cause.
const maxAffected = 5

// affectsText returns the Clusters that a root cause affects; without one, the object at the beginning of the chain.
func affectsText(c chain) string {
	root, first := c.Root().Object, c.Links[0].Object
	if len(c.Affects) == 0 && first != root {
		return nameIn(first, root.Namespace)
	}
	var names []string
	for _, ref := range c.Affects[:min(len(c.Affects), maxAffected)] {
		names = append(names, nameIn(ref, root.Namespace))
	}
	if n := len(c.Affects) - maxAffected; n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(names, ", ")
}

// writeUpcoming prints what other controllers will do, and when. The remedy of the chain is not repeated.
func (s explanation) writeUpcoming(b *strings.Builder) {
	titled := false
	for _, a := range s.Upcoming {
		if s.Chain != nil && a.Remedy == s.Chain.Remedy {
			continue
		}
		if !titled {
			b.WriteString("\nWhat other controllers will do\n")
			titled = true
		}
		fmt.Fprintf(b, "  %s: %s\n", a.Object, oneLine(a.Remedy.Text))
	}
}

// remarks are what the explanation does not consider.
type remarks struct {
	plansMissing       string
	unreadable, limits []string
	withoutPlans       bool
}

// writeRemarks prints what is not part of the explanation.
func writeRemarks(b *strings.Builder, r remarks) {
	if r.plansMissing != "" {
		b.WriteString("\nNo plan is shown: " + oneLine(r.plansMissing) + "\n")
	}
	if r.plansMissing != "" && r.withoutPlans {
		b.WriteString("The explanation uses conditions, owners and references alone.\n")
	}
	if len(r.unreadable) > 0 {
		fmt.Fprintf(b, "\nObjects of these kinds are not considered: %s\n", strings.Join(r.unreadable, ", "))
	}
	if len(r.limits) > 0 {
		fmt.Fprintf(b, "\nThe explanation may be incomplete. %s.\n", strings.Join(r.limits, ". "))
	}
}

// writeList prints the problems that need action, then one line for each problem that does not. It is the text output
// of `slipway explain` without an argument.
func writeList(w io.Writer, list problemList) error {
	var b strings.Builder
	writeProcess(&b, list.Process, list.now)
	place := "in all namespaces"
	if list.Namespace != "" {
		place = "in namespace " + list.Namespace
	}
	needed, others, warnings := splitByUser(list.Problems)
	if len(needed) == 0 {
		fmt.Fprintf(&b, "No action is needed %s.\n", place)
	} else {
		fmt.Fprintf(&b, "Problems that need action %s: %d\n", place, len(needed))
	}
	for _, c := range needed {
		b.WriteString("\n")
		writeProblem(&b, c, list.now, "")
	}
	writeSummaries(&b, "Not as it should be, but no action is needed", others)
	writeSummaries(&b, "Warnings", warnings)
	writeRemarks(&b, remarks{list.PlansMissing, list.Unreadable, list.Limits, true})
	_, err := io.WriteString(w, b.String())
	return err
}

// writeSummaries prints one line for each chain, and the remedy if its time is known.
func writeSummaries(b *strings.Builder, title string, chains []chain) {
	for i, c := range chains {
		if i == 0 {
			fmt.Fprintf(b, "\n%s\n", title)
		}
		fmt.Fprintf(b, "  %s\n", rootcause.Summary(c.Chain))
		if !c.Remedy.At.IsZero() {
			fmt.Fprintf(b, "    %s\n", oneLine(c.Remedy.Text))
		}
	}
}

func splitByUser(chains []chain) (needed, others, warnings []chain) {
	for _, c := range chains {
		switch {
		case c.NeedsUser:
			needed = append(needed, c)
		case c.IsWarning():
			warnings = append(warnings, c)
		default:
			others = append(others, c)
		}
	}
	return needed, others, warnings
}
