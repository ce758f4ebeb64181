package result

import (
	"encoding/json"
	"io"
	"math"
	"slices"
	"time"

	"github.com/slipwayhq/slipway/test/bench/requests"
)

// Report is one run.
type Report struct {
	Machine Machine  `json:"machine"`
	Figures []Figure `json:"figures"`
	// Steps of the quickstart, in the order they came.
	Steps []Step `json:"steps,omitempty"`
	// Writes that the management API server was asked for from applying the quickstart until it settled.
	Writes []requests.Line `json:"writes,omitempty"`
	// Functions are the Go benchmarks of the pure parts.
	Functions []Function `json:"functions,omitempty"`
	// Unmeasured says what could not be measured, and why. A run with any has failed.
	Unmeasured []string `json:"unmeasured,omitempty"`
}

// Machine is where it was measured.
type Machine struct {
	Date       string `json:"date"` // of the day, UTC
	Cores      int    `json:"cores"`
	Memory     int64  `json:"memory"` // bytes
	System     string `json:"system"`
	Kernel     string `json:"kernel"`
	Docker     string `json:"docker,omitempty"`
	Go         string `json:"go"`
	Slipway    string `json:"slipway,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// Load counts the processes that wanted to run in the minute before, and in the last minute of the run. With as
	// many before as there are cores, times say little.
	LoadBefore float64 `json:"loadBefore"`
	LoadAfter  float64 `json:"loadAfter"`
	// Pace is how long a piece of work takes that is always the same (machine.Pace), in nanoseconds.
	PaceBefore time.Duration `json:"paceBefore"`
	PaceAfter  time.Duration `json:"paceAfter"`
}

// Unit of a figure.
type Unit string

// The units. A megabyte is a million bytes.
const (
	Seconds   Unit = "s"
	Megabytes Unit = "MB"
	Percent   Unit = "% of a core"
	PerSecond Unit = "/s"
	Count     Unit = ""
)

// Figure is one number that was measured.
type Figure struct {
	Name  string  `json:"name"`  // stable, for programs: group.figure
	Title string  `json:"title"` // for people
	Value float64 `json:"value"`
	Unit  Unit    `json:"unit,omitempty"`
	// Goal is the most that the value should be; nil: there is none.
	Goal *float64 `json:"goal,omitempty"`
	// Runs are all values, in order, where it was measured more than once; Value is their median.
	Runs []float64 `json:"runs,omitempty"`
}

// AtMost returns the figure with a goal.
func (f Figure) AtMost(goal float64) Figure {
	f.Goal = &goal
	return f
}

// Median makes a figure of several values; there must be at least one.
func (f Figure) Median(runs []float64) Figure {
	sorted := slices.Sorted(slices.Values(runs))
	middle := len(sorted) / 2
	f.Value = sorted[middle]
	if len(sorted)%2 == 0 {
		f.Value = (sorted[middle-1] + sorted[middle]) / 2
	}
	if len(runs) > 1 {
		f.Runs = runs
	}
	return f
}

// Met reports whether the goal was reached; known is false where there is none.
func (f Figure) Met() (met, known bool) {
	if f.Goal == nil {
		return false, false
	}
	return f.Value <= *f.Goal, true
}

// MarshalJSON adds whether the goal was met, and leaves out digits that mean nothing.
func (f Figure) MarshalJSON() ([]byte, error) {
	type plain Figure
	runs := f.Runs
	f.Value, f.Runs = thousandths(f.Value), nil
	for _, v := range runs {
		f.Runs = append(f.Runs, thousandths(v))
	}
	out := struct {
		plain
		Met *bool `json:"met,omitempty"`
	}{plain: plain(f)}
	if met, known := f.Met(); known {
		out.Met = &met
	}
	return json.Marshal(out)
}

func thousandths(v float64) float64 { return math.Round(v*1000) / 1000 }

// Step is something that happened while the quickstart came up.
type Step struct {
	Name  string        `json:"name"`
	After time.Duration `json:"-"` // since apply began
}

// MarshalJSON writes seconds.
func (s Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name    string  `json:"name"`
		Seconds float64 `json:"seconds"`
	}{s.Name, thousandths(s.After.Seconds())})
}

// Function is what one call of a benchmarked function costs.
type Function struct {
	Name        string  `json:"name"`
	Nanoseconds float64 `json:"nanoseconds"` // depends on the machine; the other two do not
	Bytes       uint64  `json:"bytes"`       // allocated
	Allocations uint64  `json:"allocations"`
}

// WriteJSON writes the report for programs.
func (r Report) WriteJSON(w io.Writer) error { return JSON(w, r) }

// JSON writes a value for programs.
func JSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
