package result

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes the report for people.
func (r Report) WriteTable(w io.Writer) error {
	t := &table{Writer: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	t.machine(r.Machine)
	t.figures(r.Figures)
	t.steps(r.Steps)
	t.writes(r)
	t.functions(r.Functions)
	for _, u := range r.Unmeasured {
		t.line("not measured: %s", u)
	}
	if t.err != nil {
		return t.err
	}
	return t.Flush()
}

// table keeps the first error.
type table struct {
	*tabwriter.Writer
	err error
}

func (t *table) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t, format+"\n", args...)
	}
}

// row is a line of cells.
func (t *table) row(cells ...string) { t.line("%s", strings.Join(cells, "\t")) }

func (t *table) machine(m Machine) {
	t.line("%s: %d cores, %.0f GB memory, %s, Linux %s", m.Date, m.Cores, float64(m.Memory)/1e9, m.System, m.Kernel)
	t.line("slipway %s, Kubernetes %s, %s, Docker %s", orDash(m.Slipway), orDash(m.Kubernetes), m.Go, orDash(m.Docker))
	t.line("load %.2f before, %.2f after; pace %v before, %v after", m.LoadBefore, m.LoadAfter,
		m.PaceBefore.Round(time.Microsecond), m.PaceAfter.Round(time.Microsecond))
	if m.LoadBefore >= float64(m.Cores)/2 {
		t.line("The machine was busy with other things: times and processor use are too high.")
	}
}

func (t *table) figures(all []Figure) {
	if len(all) == 0 {
		return
	}
	t.line("")
	t.row("FIGURE", "MEASURED", "GOAL", "MET")
	for _, f := range all {
		goal, met := "", ""
		if f.Goal != nil {
			goal = "≤ " + quantity(*f.Goal, f.Unit)
		}
		switch ok, known := f.Met(); {
		case known && ok:
			met = "yes"
		case known:
			met = "no"
		}
		title := f.Title
		if len(f.Runs) > 0 {
			title += fmt.Sprintf(" (median of %d)", len(f.Runs))
		}
		t.row(title, quantity(f.Value, f.Unit), goal, met)
	}
}

func (t *table) steps(all []Step) {
	if len(all) == 0 {
		return
	}
	t.line("")
	t.row("STEP OF THE QUICKSTART", "AFTER", "TOOK")
	last := 0.0
	for _, s := range all {
		at := s.After.Seconds()
		t.row(s.Name, quantity(at, Seconds), quantity(at-last, Seconds))
		last = at
	}
}

func (t *table) writes(r Report) {
	if len(r.Writes) == 0 {
		return
	}
	t.line("")
	t.row("WRITES OF THE QUICKSTART", "VERB", "COUNT")
	for _, l := range r.Writes {
		t.row(l.Resource, l.Verb, strconv.Itoa(l.Count))
	}
}

func (t *table) functions(all []Function) {
	if len(all) == 0 {
		return
	}
	t.line("")
	t.row("FUNCTION", "µS", "BYTES", "ALLOCATIONS")
	for _, f := range all {
		t.row(f.Name, strconv.FormatFloat(f.Nanoseconds/1e3, 'f', 1, 64), strconv.FormatUint(f.Bytes, 10), strconv.FormatUint(f.Allocations, 10))
	}
}

// quantity is a number with its unit, with as many digits as mean something.
func quantity(v float64, u Unit) string {
	text := strconv.FormatFloat(round(v), 'f', -1, 64)
	switch u {
	case Count, PerSecond:
		return text + string(u)
	case Percent:
		return text + " %"
	}
	return text + " " + string(u)
}

// round keeps two digits after the point below ten, one below a hundred.
func round(v float64) float64 {
	digits := 0
	switch size := math.Abs(v); {
	case size < 10:
		digits = 2
	case size < 100:
		digits = 1
	}
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
