package condition

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The functions of this file compute one condition from others, for the condition tables of the controllers. The format
// of their messages is Cluster API's. The order in messages must be stable, because each changed message is a write.

// Reasons are the reasons of a combined condition for its three outcomes. The rows of the controllers pass it to
// [Summarize] and [Aggregate].
type Reasons struct {
	Info, Issue, Unknown string
}

// Mirror returns the result that copies a condition of another object. It returns missing if the object does not have
// the condition. Rows of many controllers call it for conditions of referenced or controlled objects.
func Mirror(source Set, conditionType string, missing Result) Result {
	c := source.Get(conditionType)
	if c == nil {
		return missing
	}
	return Result{Status: c.Status, Reason: c.Reason, Message: c.Message}
}

// Part describes one condition that contributes to a summary. The rows of the controllers pass it to [Summarize] and
// [Aggregate].
type Part struct {
	Type     string
	Polarity Polarity
	// Optional parts are ignored if they are absent. Other absent parts count as unknown.
	Optional bool
	// Ignore lists reasons with which the part counts as good regardless of its status.
	Ignore []string
	// Only lists the reasons with which the part counts as an issue. If it is empty, every reason does.
	Only []string
}

// weight orders the parts of a message: issues first, then unknown conditions, then the rest.
type weight int

const (
	issue weight = iota
	unknown
	info
)

func weigh(c metav1.Condition, p Part) weight {
	bad := metav1.ConditionFalse
	if p.Polarity == Negative {
		bad = metav1.ConditionTrue
	}
	switch {
	case slices.Contains(p.Ignore, c.Reason), len(p.Only) > 0 && !slices.Contains(p.Only, c.Reason):
		return info
	case c.Status == bad:
		return issue
	case c.Status == metav1.ConditionUnknown:
		return unknown
	}
	return info
}

// Ready returns the row of the Ready condition, which summarizes the given conditions and Deleting. The LocalCluster
// controller uses it.
func Ready[F any](types ...string) Row[F] {
	var parts []Part
	for _, t := range types {
		parts = append(parts, Part{Type: t})
	}
	parts = append(parts, Part{Type: clusterv1.DeletingCondition, Polarity: Negative})
	reasons := Reasons{Info: clusterv1.ReadyReason, Issue: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason}
	return Row[F]{Type: clusterv1.ReadyCondition, Summarize: func(_ F, set Set) Result { return Summarize(set, reasons, parts...) }}
}

// Summarize returns one result for several conditions of one object: bad if any part is an issue, otherwise unknown if
// any part is unknown, otherwise good. The message has a line for each relevant part. The rows of many controllers call
// it for conditions such as Ready.
func Summarize(set Set, reasons Reasons, parts ...Part) Result {
	lines := map[weight][]string{}
	for _, p := range parts {
		c := set.Get(p.Type)
		if c == nil {
			if !p.Optional {
				lines[unknown] = append(lines[unknown], fmt.Sprintf("* %s: Condition not yet reported", p.Type))
			}
			continue
		}
		w := weigh(*c, p)
		if w == info && c.Message == "" {
			continue
		}
		lines[w] = append(lines[w], bullet(p.Type, *c))
	}
	return mergeLines(lines, reasons)
}

func mergeLines(lines map[weight][]string, reasons Reasons) Result {
	all := strings.Join(append(append([]string{}, lines[issue]...), lines[unknown]...), "\n")
	switch {
	case len(lines[issue]) > 0:
		return False(reasons.Issue, all)
	case len(lines[unknown]) > 0:
		return Unknown(reasons.Unknown, all)
	}
	return TrueBecause(reasons.Info, strings.Join(lines[info], "\n"))
}

// bullet returns the line of one condition. Packages rootcause and operate remove the leading "* " from such messages.
func bullet(subject string, c metav1.Condition) string {
	message := c.Message
	if message == "" {
		message = c.Reason
	}
	if strings.HasPrefix(message, "* ") {
		return fmt.Sprintf("* %s:\n%s", subject, indent(message))
	}
	return fmt.Sprintf("* %s: %s", subject, message)
}

// indent indents every line of a message by two columns, for use below another message.
func indent(message string) string {
	return "  " + strings.ReplaceAll(message, "\n", "\n  ")
}

// AggregateMember is one object in an aggregation. The controllers of owners, for example the Cluster controller, build
// the list for [Aggregate].
type AggregateMember struct {
	// Kind and Name are shown in messages.
	Kind, Name string
	Conditions Set
	// Deleted is the deletion timestamp of the object, or nil. Only [Lingering] uses it.
	Deleted *metav1.Time
}

// namesShown is the maximum number of objects that a message names; the rest are counted.
const namesShown = 3

// Aggregate returns one result for one condition of many objects. Objects with the same message share a line. Issues
// are listed before unknown conditions; other messages are listed only if there are neither. At most three messages of
// each weight are listed, the rest are counted. The Cluster controller and the other owners of Machines call it.
func Aggregate(members []AggregateMember, part Part, reasons Reasons) Result {
	groups := map[weight]map[string][]AggregateMember{issue: {}, unknown: {}, info: {}}
	for _, m := range members {
		c := m.Conditions.Get(part.Type)
		if c == nil {
			if part.Optional {
				continue
			}
			c = &metav1.Condition{Status: metav1.ConditionUnknown, Message: "Condition " + part.Type + " not yet reported"}
		}
		w := weigh(*c, part)
		message := c.Message
		if message == "" && w != info {
			message = "Condition " + part.Type + " is " + string(c.Status) + ", reason " + c.Reason
		}
		groups[w][message] = append(groups[w][message], m)
	}
	lines := map[weight][]string{
		issue: groupLines(groups[issue], "other issues"), unknown: groupLines(groups[unknown], "status unknown"),
		info: groupLines(groups[info], "additional info"),
	}
	v := mergeLines(lines, reasons)
	return invertForPolarity(v, part.Polarity, reasons)
}

// invertForPolarity inverts the result of an aggregation of negative conditions, because the aggregated condition is
// negative too: it is True if there is an issue.
func invertForPolarity(v Result, p Polarity, reasons Reasons) Result {
	if p == Positive || v.Status == metav1.ConditionUnknown {
		return v
	}
	if v.Status == metav1.ConditionFalse {
		return TrueBecause(reasons.Issue, v.Message)
	}
	return False(reasons.Info, v.Message)
}

// groupLines returns a line for each of the most frequent messages, and one for the rest, which have what rest
// describes.
func groupLines(groups map[string][]AggregateMember, rest string) []string {
	var messages []string
	for message := range groups {
		if message != "" {
			messages = append(messages, message)
		}
	}
	sort.Slice(messages, func(i, j int) bool {
		a, b := messages[i], messages[j]
		if len(groups[a]) != len(groups[b]) {
			return len(groups[a]) > len(groups[b])
		}
		return a < b
	})
	var lines []string
	for i, message := range messages {
		if i == namesShown {
			lines = append(lines, fmt.Sprintf("And %s with %s", countKinds(messages[i:], groups), rest))
			break
		}
		lines = append(lines, bullet(subjects(groups[message]), metav1.Condition{Message: message}))
	}
	return lines
}

func countKinds(messages []string, groups map[string][]AggregateMember) string {
	var rest []AggregateMember
	for _, message := range messages {
		rest = append(rest, groups[message]...)
	}
	return fmt.Sprintf("%d %s", len(rest), plural(rest[0].Kind, len(rest)))
}

func subjects(members []AggregateMember) string {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.Name)
	}
	sort.Strings(names)
	return plural(members[0].Kind, len(members)) + " " + Names(names)
}

func plural(kind string, n int) string {
	if n == 1 {
		return kind
	}
	return kind + "s"
}

// Names joins up to three names for a message and appends the number of remaining names. Controllers and commands call
// it.
func Names(names []string) string {
	if len(names) <= namesShown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, ... (%d more)", strings.Join(names[:namesShown], ", "), len(names)-namesShown)
}
