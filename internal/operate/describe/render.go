package describe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Style configures the table, from the terminal and the flags of `slipway describe cluster`.
type Style struct {
	// Now is the reference time of the SINCE column.
	Now time.Time
	// Unicode draws the branches with box-drawing characters instead of ASCII.
	Unicode bool
	// Color prints the status of conditions with ANSI colors.
	Color bool
	// Width is the width of the terminal in columns, to which messages are wrapped; 0 does not wrap.
	Width int
	// Deprecated prints the columns for v1beta1 conditions.
	Deprecated bool
}

// Render prints the tree as a table with a heading, one row per object. Long messages continue below their row.
// `slipway describe cluster` prints the result.
func Render(root *Object, s Style) string {
	t := table{style: s, glyphs: ascii}
	if s.Unicode {
		t.glyphs = unicodeGlyphs
	}
	t.heading()
	t.object(root, "", "")
	return t.String()
}

type glyphs struct{ tee, end, bar, gap string }

var (
	unicodeGlyphs = glyphs{"├─", "└─", "│ ", "  "}
	ascii         = glyphs{"|-", "`-", "| ", "  "}
)

// line is one row of the table: its cells, and the prefix of its continuation lines. [Render] creates lines; layout.go
// fits them into the width of the terminal.
type line struct {
	cells []string
	below string
	paint string
}

// table is the output of [Render] under construction. layout.go computes the widths of its columns.
type table struct {
	style  Style
	glyphs glyphs
	lines  []line
}

func (t *table) heading() {
	cells := []string{"NAME", "REPLICAS", "AVAILABLE", "READY", "UP TO DATE", "STATUS", "REASON", "SINCE", "MESSAGE"}
	if t.style.Deprecated {
		cells = []string{"NAME", "READY", "SEVERITY", "REASON", "SINCE", "MESSAGE"}
	}
	t.lines = append(t.lines, line{cells: cells})
}

// object adds the rows of an object, its conditions and its children. lead is the prefix of the object's own line,
// below the prefix of its descendants' lines.
func (t *table) object(o *Object, lead, below string) {
	conditions := o.Shown()
	open, head := t.glyphs.gap, below
	if len(o.Children) > 0 {
		open, head = t.glyphs.bar, below+t.glyphs.bar
	}
	if len(conditions) > 0 {
		head = below + open + t.glyphs.bar
	}
	t.add(entry{lead + o.title(), head, o.Replicas, o.Headline(), o.note(t.style.Now)})
	for i, c := range conditions {
		branch, rest := t.glyphs.tee, below+open+t.glyphs.bar
		if i == len(conditions)-1 {
			branch, rest = t.glyphs.end, below+open
		}
		t.condition(below+open+branch+c.Type, rest, c)
	}
	for i, c := range o.Children {
		branch, rest := t.glyphs.tee, t.glyphs.bar
		if i == len(o.Children)-1 {
			branch, rest = t.glyphs.end, t.glyphs.gap
		}
		t.object(c, below+branch, below+rest)
	}
}

// entry is the content of an object's row.
type entry struct {
	name, below string
	replicas    *Replicas
	condition   *Condition
	note        string
}

func (t *table) add(e entry) {
	var status, severity, reason, since, message, paint string
	if c := e.condition; c != nil {
		status, severity, reason, message = string(c.Status), c.Severity, c.Reason, mergeRepeatedItems(withoutLog(c.Message))
		since, paint = t.since(c.LastTransitionTime), t.color(c)
	}
	if e.note != "" {
		message = strings.TrimSpace(e.note + "\n" + message)
	}
	if t.style.Deprecated {
		t.lines = append(t.lines, line{[]string{e.name, status, severity, reason, since, message}, e.below, paint})
		return
	}
	if e.condition != nil {
		status = e.condition.Type + ": " + status
	}
	r := e.replicas
	if r == nil {
		r = &Replicas{}
	}
	cells := []string{e.name, ratio(r), text(r.Available), text(r.Ready), text(r.UpToDate), status, reason, since, message}
	t.lines = append(t.lines, line{cells, e.below, paint})
}

func (t *table) condition(name, below string, c Condition) {
	if t.style.Deprecated {
		t.add(entry{name: name, below: below, condition: &c})
		return
	}
	cells := []string{name, "", "", "", "", string(c.Status), c.Reason, t.since(c.LastTransitionTime), withoutLog(c.Message)}
	t.lines = append(t.lines, line{cells, below, t.color(&c)})
}

func (o *Object) title() string {
	name := o.Kind + "/" + o.Name
	switch {
	case len(o.Members) > 0:
		name = fmt.Sprintf("%d %ss", len(o.Members), o.Kind)
	case o.Kind == "":
		return o.Role
	}
	if o.Role != "" {
		return o.Role + " - " + name
	}
	return name
}

// note returns the additional message of the row.
func (o *Object) note(now time.Time) string {
	if o.Missing != "" {
		return o.Missing
	}
	if o.Unreported {
		return "No controller has reported on it yet"
	}
	if o.Remediation != nil {
		return o.Remediation.text(now)
	}
	if len(o.Members) > 3 {
		return fmt.Sprintf("See %s and %d more", strings.Join(o.Members[:3], ", "), len(o.Members)-3)
	}
	if len(o.Members) > 0 {
		return "See " + strings.Join(o.Members, ", ")
	}
	return ""
}

func (t *table) since(at metav1.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, t.style.Now.Sub(at.Time)))
}

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// color returns the color for the status of a condition.
func (t *table) color(c *Condition) string {
	if !t.style.Color {
		return ""
	}
	switch {
	case slices.Contains(negativeTypes(), c.Type):
		if c.Status == metav1.ConditionTrue {
			return yellow
		}
		return ""
	case c.Status == metav1.ConditionTrue:
		return green
	case c.Status == metav1.ConditionFalse && c.Severity != "Info" && c.Severity != "Warning":
		return red
	}
	return yellow
}

func ratio(r *Replicas) string {
	if r.Desired == nil {
		return text(r.Current)
	}
	current := "0"
	if r.Current != nil {
		current = text(r.Current)
	}
	return current + "/" + text(r.Desired)
}

func text(n *int32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}
