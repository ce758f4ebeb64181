package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
	Functions  []Function    `json:"functions,omitempty"`  // Go benchmarks
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
	Runs  []float64 `json:"runs,omitempty"` // all values in order, if Value is a median
}

func NewFigure(name, title string, value float64, unit Unit) Figure {
	return Figure{Name: name, Title: title, Value: value, Unit: unit}
}

// NewMedian returns a figure of several runs, at least one.
func NewMedian(name, title string, runs []float64, unit Unit) Figure {
	f := NewFigure(name, title, Median(runs), unit)
	if len(runs) > 1 {
		f.Runs = runs
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

func (f Figure) AtMost(goal float64) Figure {
	f.Goal = &goal
	return f
}

// Met reports whether the goal is met; nil without a goal.
func (f Figure) Met() *bool {
	if f.Goal == nil {
		return nil
	}
	met := f.Value <= *f.Goal
	return &met
}

// MarshalJSON rounds the values and adds whether the goal is met.
func (f Figure) MarshalJSON() ([]byte, error) {
	type plain Figure
	runs := f.Runs
	f.Value, f.Runs = thousandths(f.Value), nil
	for _, v := range runs {
		f.Runs = append(f.Runs, thousandths(v))
	}
	return json.Marshal(struct {
		plain
		Met *bool `json:"met,omitempty"`
	}{plain(f), f.Met()})
}

func thousandths(v float64) float64 { return math.Round(v*1000) / 1000 }

// Step is an event during the quickstart.
type Step struct {
	Name  string
	After time.Duration // since the start of apply
}

// MarshalJSON writes seconds.
func (s Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name    string  `json:"name"`
		Seconds float64 `json:"seconds"`
	}{s.Name, thousandths(s.After.Seconds())})
}

// Function is the cost of one call in a Go benchmark.
type Function struct {
	Name        string  `json:"name"`
	Nanoseconds float64 `json:"nanoseconds"`
	Bytes       uint64  `json:"bytes"`
	Allocations uint64  `json:"allocations"`
}

func (r Report) WriteJSON(w io.Writer) error { return WriteJSON(w, r) }

func WriteJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

func (r Report) WriteTable(w io.Writer) error {
	var text bytes.Buffer // never returns an error
	t := table{tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)}
	t.machine(r.Machine)
	t.figures(r.Figures)
	t.steps(r.Steps)
	t.header(len(r.Writes), "WRITES OF THE QUICKSTART", "VERB", "COUNT")
	for _, l := range r.Writes {
		t.row(l.Resource, l.Verb, strconv.Itoa(l.Count))
	}
	t.header(len(r.Functions), "FUNCTION", "µS", "BYTES", "ALLOCATIONS")
	for _, f := range r.Functions {
		t.row(f.Name, strconv.FormatFloat(f.Nanoseconds/1e3, 'f', 1, 64), strconv.FormatUint(f.Bytes, 10), strconv.FormatUint(f.Allocations, 10))
	}
	for _, u := range r.Unmeasured {
		t.row("not measured: " + u)
	}
	_ = t.Flush()
	_, err := w.Write(text.Bytes())
	return err
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
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	t.row(fmt.Sprintf("%s: %d cores, %.0f GB memory, %s, Linux %s", m.Date, m.Cores, float64(m.Memory)/1e9, m.System, m.Kernel))
	t.row(fmt.Sprintf("slipway %s, Kubernetes %s, %s, Docker %s", dash(m.Slipway), dash(m.Kubernetes), m.Go, dash(m.Docker)))
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
		if m := f.Met(); m != nil {
			goal, met = "≤ "+quantity(*f.Goal, f.Unit), map[bool]string{true: "yes", false: "no"}[*m]
		}
		t.row(title, quantity(f.Value, f.Unit), goal, met)
	}
}

func (t table) steps(all []Step) {
	t.header(len(all), "STEP OF THE QUICKSTART", "AFTER", "TOOK")
	last := 0.0
	for _, s := range all {
		at := s.After.Seconds()
		t.row(s.Name, quantity(at, Seconds), quantity(at-last, Seconds))
		last = at
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
