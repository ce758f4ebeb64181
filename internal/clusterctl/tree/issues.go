package tree

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Negative returns the types of conditions that should be False, in every kind. A provider's own types are unknown; beside
// those of Cluster API there are those that many projects use. All others should be True.
func Negative() []string {
	return []string{
		clusterv1.DeletingCondition, clusterv1.PausedCondition, clusterv1.RemediatingCondition, clusterv1.RollingOutCondition,
		clusterv1.ScalingUpCondition, clusterv1.ScalingDownCondition, clusterv1.MachineUpdatingCondition,
		"Degraded", "Failed", "Progressing", "Reconciling", "Stalled", "UsesDeprecatedHooks",
	}
}

// Issues returns the conditions that are not what they should be and have a message.
func (o *Object) Issues() []Condition {
	var issues []Condition
	for _, c := range o.Conditions {
		if c.Message != "" && !o.isGood(c) {
			issues = append(issues, c)
		}
	}
	return issues
}

// isGood reports whether a condition has the status it should have.
func (o *Object) isGood(c Condition) bool {
	if slices.Contains(Negative(), c.Type) || slices.Contains(o.negative, c.Type) {
		return c.Status == metav1.ConditionFalse
	}
	return c.Status == metav1.ConditionTrue
}

// Shown are the conditions that are shown below the headline: all when they were asked for, else the issues that neither the
// headline nor the rows below say, and Paused while it is true, because it explains why nothing moves.
func (o *Object) Shown() []Condition {
	if o.ShowConditions {
		return o.Conditions
	}
	return o.shown
}

// chooseShown chooses the conditions to show, those of the children first, and returns all messages of the subtree.
func (o *Object) chooseShown() said {
	var all said
	for _, c := range o.Children {
		all = append(all, c.chooseShown()...)
	}
	head := o.Headline()
	if head != nil {
		all = append(all, *head)
	}
	for _, c := range o.Conditions {
		paused := c.Type == clusterv1.PausedCondition && c.Status == metav1.ConditionTrue
		switch {
		case head != nil && c.Type == head.Type:
		case paused, c.Message != "" && !o.isGood(c) && !all.includes(c.Message):
			o.shown = append(o.shown, c)
			all = append(all, c)
		}
	}
	return all
}

// sayable is what the rows of a subtree can say.
func (o *Object) sayable() said {
	all := said(o.Issues())
	if head := o.Headline(); head != nil {
		all = append(all, *head)
	}
	for _, c := range o.Children {
		all = append(all, c.sayable()...)
	}
	return all
}

// said are conditions whose messages a reader sees.
type said []Condition

// subject begins a line of a message that repeats what other objects say: "Machines a, b: ".
var subject = regexp.MustCompile(`^[A-Z][A-Za-z0-9]* [a-z0-9][a-z0-9.-]*(, [a-z0-9][a-z0-9.-]*)*(, \.\.\. \(\d+ more\))?:\s*`)

// includes reports whether a reader sees every line of a message, apart from how it is indented and which objects it names.
// That an object is being deleted needs no repetition where its Deleting condition is seen, which tells more.
func (s said) includes(message string) bool {
	for line := range strings.Lines(message) {
		line = strings.TrimSpace(strings.TrimLeft(line, "* "))
		for subject.MatchString(line) {
			line = strings.TrimLeft(subject.ReplaceAllString(line, ""), "* ")
		}
		deleting := strings.HasPrefix(line, clusterv1.DeletingCondition+": ")
		if !slices.ContainsFunc(s, func(c Condition) bool {
			return strings.Contains(c.Message, line) || deleting && c.Type == clusterv1.DeletingCondition && c.Message != ""
		}) {
			return false
		}
	}
	return true
}

// item is a line of a message that sums conditions up, "* Type: what it says".
var item = regexp.MustCompile(`^\* ([A-Z][A-Za-z0-9]*): (.+)$`)

// lastWords follow in a message on what a control plane was logging as it died, many lines that few of say why.
const lastWords = "; it last said:"

// withoutLog leaves out of a message what a control plane was logging, up to the next item. How to see it is said before that.
func withoutLog(message string) string {
	var out []string
	inLog := false
	for line := range strings.SplitSeq(message, "\n") {
		if inLog = inLog && !strings.HasPrefix(strings.TrimSpace(line), "* "); inLog {
			continue
		}
		rest, follows := strings.CutSuffix(line, lastWords)
		out, inLog = append(out, rest), follows
	}
	return strings.Join(out, "\n")
}

// joined joins the lines of a message that say the same of several conditions: "* A, B: what both say". A line that goes on below
// stays as it is.
func joined(message string) string {
	lines := strings.Split(message, "\n")
	var out []string
	at := map[string]int{}
	for i, line := range lines {
		m := item.FindStringSubmatch(line)
		if m == nil || i+1 < len(lines) && strings.HasPrefix(lines[i+1], " ") {
			out = append(out, line)
			continue
		}
		if n, twice := at[m[2]]; twice {
			out[n] = strings.TrimSuffix(out[n], ": "+m[2]) + ", " + m[1] + ": " + m[2]
			continue
		}
		at[m[2]] = len(out)
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// Said returns the messages that the row of an object shows about what is not as it should be.
func (o *Object) Said() []string {
	var messages []string
	if head := o.Headline(); head != nil && head.Message != "" && !o.isGood(*head) {
		messages = append(messages, head.Message)
	}
	for _, c := range o.shown {
		if c.Message != "" {
			messages = append(messages, c.Message)
		}
	}
	return messages
}
