package describe

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// negativeTypes returns the condition types with negative polarity, which should be False: the types of Cluster API,
// and common types of other projects. All other types should be True.
func negativeTypes() []string {
	return []string{
		clusterv1.DeletingCondition, clusterv1.PausedCondition, clusterv1.RemediatingCondition, clusterv1.RollingOutCondition,
		clusterv1.ScalingUpCondition, clusterv1.ScalingDownCondition, clusterv1.MachineUpdatingCondition,
		"Degraded", "Failed", "Progressing", "Reconciling", "Stalled", "UsesDeprecatedHooks",
	}
}

// Issues returns the conditions that have a message and not the status they should have. The tree and the steps of
// package progress show them.
func (o *Object) Issues() []Condition {
	var issues []Condition
	for _, c := range o.Conditions {
		if c.Message != "" && !o.hasExpectedStatus(c) {
			issues = append(issues, c)
		}
	}
	return issues
}

// hasExpectedStatus reports whether a condition has the status it should have.
func (o *Object) hasExpectedStatus(c Condition) bool { return HasExpectedStatus(c, o.negative) }

// HasExpectedStatus reports whether a condition has the status it should have. negative lists the types with negative
// polarity in addition to those of Cluster API and the common ones of other projects. Packages rootcause and ui use it
// as well.
func HasExpectedStatus(c Condition, negative []string) bool {
	if slices.Contains(negativeTypes(), c.Type) || slices.Contains(negative, c.Type) {
		return c.Status == metav1.ConditionFalse
	}
	return c.Status == metav1.ConditionTrue
}

// Shown returns the conditions that are shown below the headline: all if ShowConditions is set. Otherwise the issues
// that are not included in the headline or the rows below, and Paused while it is true, because it explains why nothing
// is reconciled. [Render] and package ui call it.
func (o *Object) Shown() []Condition {
	if o.ShowConditions {
		return o.Conditions
	}
	return o.shown
}

// chooseShown selects the conditions to show, children first, and returns all displayed conditions of the subtree.
// [Build] calls it at its end.
func (o *Object) chooseShown() displayedConditions {
	var all displayedConditions
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
		case paused, c.Message != "" && !o.hasExpectedStatus(c) && !all.displays(c.Message):
			o.shown = append(o.shown, c)
			all = append(all, c)
		}
	}
	return all
}

// displayableConditions returns the headlines and issues of a subtree. [Build] compares them with the conditions of
// other rows, so that no issue appears twice.
func (o *Object) displayableConditions() displayedConditions {
	all := displayedConditions(o.Issues())
	if head := o.Headline(); head != nil {
		all = append(all, *head)
	}
	for _, c := range o.Children {
		all = append(all, c.displayableConditions()...)
	}
	return all
}

// displayedConditions is a list of conditions whose messages are displayed.
type displayedConditions []Condition

// subject matches the prefix of a message line that repeats the messages of other objects: "Machines a, b: ". Package
// condition writes such lines with its function Names, so both must agree.
var subject = regexp.MustCompile(`^[A-Z][A-Za-z0-9]* [a-z0-9][a-z0-9.-]*(, [a-z0-9][a-z0-9.-]*)*(, \.\.\. \(\d+ more\))?:\s*`)

// displays reports whether every line of a message is already displayed, ignoring indentation and object names. The
// line "Deleting: …" counts as displayed if the more detailed Deleting condition of an object is.
func (s displayedConditions) displays(message string) bool {
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

// item matches a line of a summary message: "* Type: message".
var item = regexp.MustCompile(`^\* ([A-Z][A-Za-z0-9]*): (.+)$`)

// logMarker precedes the last log lines of a failed control plane in a message of the HostedControlPlane controller.
// Most of these lines do not explain the failure. Package hosted writes it (hosted/conditions.go), so both must agree.
const logMarker = "; its last log lines:"

// withoutLog removes the log lines of a control plane from a message, up to the next item. The text before them
// describes how to view the log. [Render] shortens messages with it.
func withoutLog(message string) string {
	var out []string
	inLog := false
	for line := range strings.SplitSeq(message, "\n") {
		if inLog = inLog && !strings.HasPrefix(strings.TrimSpace(line), "* "); inLog {
			continue
		}
		rest, follows := strings.CutSuffix(line, logMarker)
		out, inLog = append(out, rest), follows
	}
	return strings.Join(out, "\n")
}

// mergeRepeatedItems merges the lines of a message that are the same for several conditions: "* A, B: message". Lines
// with continuation lines are left unchanged. [Render] calls it for each message.
func mergeRepeatedItems(message string) string {
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

// DisplayedIssues returns the issue messages displayed in the row of an object. The steps of package progress show
// them.
func (o *Object) DisplayedIssues() []string {
	var messages []string
	if head := o.Headline(); head != nil && head.Message != "" && !o.hasExpectedStatus(*head) {
		messages = append(messages, head.Message)
	}
	for _, c := range o.shown {
		if c.Message != "" {
			messages = append(messages, c.Message)
		}
	}
	return messages
}
