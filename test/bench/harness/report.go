package harness

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the result of one run.
type Report struct {
	Machine    Machine       `json:"machine"`
	Figures    []Figure      `json:"figures"`
	Steps      []Step        `json:"steps,omitempty"`      // of the quickstart, in order
	Writes     []RequestLine `json:"writes,omitempty"`     // of the quickstart until it settled
	Unmeasured []string      `json:"unmeasured,omitempty"` // failed measurements with the reasons
}

type Unit string

// The units. A megabyte is a million bytes.
const (
	Seconds   Unit = "s"
	Megabytes Unit = "MB"
	Percent   Unit = "% of a core"
	PerSecond Unit = "/s"
	Count     Unit = ""
)

// Figure is a measured number. Programs depend on the name.
type Figure struct {
	Name  string    `json:"name"`
	Title string    `json:"title"`
	Value float64   `json:"value"`
	Unit  Unit      `json:"unit,omitempty"`
	Goal  *float64  `json:"goal,omitempty"` // upper limit; nil if there is none
	Met   *bool     `json:"met,omitempty"`  // whether the goal is met
	Runs  []float64 `json:"runs,omitempty"` // all values in order, if Value is a median
}

func NewFigure(name, title string, value float64, unit Unit) Figure {
	return Figure{Name: name, Title: title, Value: thousandths(value), Unit: unit}
}

// NewMedian returns a figure of several runs, at least one.
func NewMedian(name, title string, runs []float64, unit Unit) Figure {
	f := NewFigure(name, title, Median(runs), unit)
	if len(runs) > 1 {
		for _, v := range runs {
			f.Runs = append(f.Runs, thousandths(v))
		}
	}
	return f
}

// Median is the median of at least one value.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// AtMost adds the goal.
func (f Figure) AtMost(goal float64) Figure {
	met := f.Value <= goal
	f.Goal, f.Met = &goal, &met
	return f
}

func thousandths(v float64) float64 { return math.Round(v*1000) / 1000 }

// Step is an event during the quickstart.
type Step struct {
	Name  string  `json:"name"`
	After float64 `json:"seconds"` // since the start of apply
}

// Table returns the report as text.
func (r Report) Table() string {
	text := &strings.Builder{}
	t := table{tabwriter.NewWriter(text, 0, 8, 2, ' ', 0)}
	t.machine(r.Machine)
	t.figures(r.Figures)
	t.steps(r.Steps)
	t.header(len(r.Writes), "WRITES OF THE QUICKSTART", "VERB", "COUNT")
	for _, l := range r.Writes {
		t.row(l.Resource, l.Verb, strconv.Itoa(l.Count))
	}
	for _, u := range r.Unmeasured {
		t.row("not measured: " + u)
	}
	Check(t.Flush())
	return text.String()
}

type table struct{ *tabwriter.Writer }

func (t table) row(cells ...string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) }

// header begins a section with a number of rows; nothing if it is empty.
func (t table) header(rows int, cells ...string) {
	if rows > 0 {
		t.row()
		t.row(cells...)
	}
}

func (t table) machine(m Machine) {
	t.row(fmt.Sprintf("%s: %d cores, %.0f GB memory, %s, Linux %s", m.Date, m.Cores, float64(m.Memory)/1e9, m.System, m.Kernel))
	t.row(fmt.Sprintf("slipway %s, Kubernetes %s, %s, Docker %s", cmp.Or(m.Slipway, "-"), cmp.Or(m.Kubernetes, "-"), m.Go, cmp.Or(m.Docker, "-")))
	t.row(fmt.Sprintf("load %.2f before, %.2f after; pace %v before, %v after", m.LoadBefore, m.LoadAfter,
		m.PaceBefore.Round(time.Microsecond), m.PaceAfter.Round(time.Microsecond)))
	if m.LoadBefore >= float64(m.Cores)/2 {
		t.row("The machine was busy with other things: times and processor use are too high.")
	}
}

func (t table) figures(all []Figure) {
	t.header(len(all), "FIGURE", "MEASURED", "GOAL", "MET")
	for _, f := range all {
		title, goal, met := f.Title, "", ""
		if len(f.Runs) > 0 {
			title += fmt.Sprintf(" (median of %d)", len(f.Runs))
		}
		if f.Goal != nil {
			goal, met = "≤ "+quantity(*f.Goal, f.Unit), map[bool]string{true: "yes", false: "no"}[*f.Met]
		}
		t.row(title, quantity(f.Value, f.Unit), goal, met)
	}
}

func (t table) steps(all []Step) {
	t.header(len(all), "STEP OF THE QUICKSTART", "AFTER", "TOOK")
	last := 0.0
	for _, s := range all {
		t.row(s.Name, quantity(s.After, Seconds), quantity(s.After-last, Seconds))
		last = s.After
	}
}

// quantity formats a number with its unit and three significant digits, at most two after the point.
func quantity(v float64, u Unit) string {
	digits := 0
	switch size := math.Abs(v); {
	case size < 10:
		digits = 2
	case size < 100:
		digits = 1
	}
	scale := math.Pow10(digits)
	text := strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64)
	switch u {
	case Count, PerSecond:
		return text + string(u)
	case Percent:
		return text + " %"
	}
	return text + " " + string(u)
}
