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

// writeExplanation prints the chain of an object, the plans for it, and what happens without a user.
func writeExplanation(w io.Writer, s explanation) error {
	var b strings.Builder
	if s.Chain == nil {
		fmt.Fprintf(&b, "%s is as it should be.\n", s.title())
	} else {
		s.writeChain(&b)
	}
	writeOthers(&b, s.Others, s.now)
	if len(s.ObjectPlans.Plans) > 0 {
		b.WriteString("\n")
		s.writePlans(&b)
	}
	s.writeUpcoming(&b)
	writeRemarks(&b, s.PlansMissing, s.Unreadable, s.Chain != nil && !s.Chain.Plans)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeChain prints the links of the chain and the remedy.
func (s explanation) writeChain(b *strings.Builder) {
	state := "is not as it should be"
	if !s.Chain.NeedsUser {
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
		text := linkText(l)
		if i < len(s.Chain.Links)-1 {
			text = firstLines(text)
		}
		fmt.Fprintf(b, "%s%s\n", below, indent(text, below))
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

// maxLines is the number of lines of a message that leads to another object.
const maxLines = 3

// firstLines returns the first lines of a text.
func firstLines(text string) string {
	lines := strings.Split(text, "\n")
	if len(lines) <= maxLines {
		return text
	}
	return strings.Join(append(lines[:maxLines:maxLines], "…"), "\n")
}

// nameIn returns the name of an object, with its namespace if it is another one.
func nameIn(r rootcause.Ref, namespace string) string {
	if r.Namespace == namespace {
		return r.String()
	}
	return r.Qualified()
}

// since formats how long something has lasted, or nothing if that is unknown.
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
	fmt.Fprintf(b, "%s%s\n%s  %s\n", margin, title, margin, indent(r.Text, margin+"  "))
	if r.Command != "" && !r.Automatic {
		fmt.Fprintf(b, "%s    $ %s\n", margin, r.Command)
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
	fmt.Fprintf(b, "%s  %s\n", margin, indent(linkText(root), margin+"  "))
	if first := c.Links[0].Object; first != root.Object {
		fmt.Fprintf(b, "%s  Affects %s\n", margin, nameIn(first, root.Object.Namespace))
	}
	writeRemedy(b, c.Remedy, margin+"  ")
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
		fmt.Fprintf(b, "  %s: %s\n", a.Object, indent(a.Remedy.Text, "  "))
	}
}

// writeRemarks prints what is not part of the explanation.
func writeRemarks(b *strings.Builder, plansMissing string, unreadable []string, withoutPlans bool) {
	if plansMissing != "" {
		b.WriteString("\nNo plan is shown: " + indent(plansMissing, "  ") + "\n")
	}
	if plansMissing != "" && withoutPlans {
		b.WriteString("The explanation uses conditions, owners and references alone.\n")
	}
	if len(unreadable) > 0 {
		fmt.Fprintf(b, "\nObjects that you may not read, or that are not installed, are not considered: %s\n", strings.Join(unreadable, ", "))
	}
}

// writeList prints the problems that need action, then one line for each problem that does not.
func writeList(w io.Writer, list problemList) error {
	var b strings.Builder
	place := "in all namespaces"
	if list.Namespace != "" {
		place = "in namespace " + list.Namespace
	}
	needed, others := splitByUser(list.Problems)
	if len(needed) == 0 {
		fmt.Fprintf(&b, "No action is needed %s.\n", place)
	} else {
		fmt.Fprintf(&b, "Problems that need action %s: %d\n", place, len(needed))
	}
	for _, c := range needed {
		b.WriteString("\n")
		writeProblem(&b, c, list.now, "")
	}
	for i, c := range others {
		if i == 0 {
			b.WriteString("\nNot as it should be, but no action is needed\n")
		}
		fmt.Fprintf(&b, "  %s\n", rootcause.Summary(c.Chain))
		if !c.Remedy.At.IsZero() {
			fmt.Fprintf(&b, "    %s\n", indent(c.Remedy.Text, "    "))
		}
	}
	writeRemarks(&b, list.PlansMissing, list.Unreadable, true)
	_, err := io.WriteString(w, b.String())
	return err
}

func splitByUser(chains []chain) (needed, others []chain) {
	for _, c := range chains {
		if c.NeedsUser {
			needed = append(needed, c)
		} else {
			others = append(others, c)
		}
	}
	return needed, others
}
