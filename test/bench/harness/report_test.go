package harness

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	tests := map[string]struct {
		reason string
		runs   []float64
		want   Figure
	}{
		"one":  {"a single run is the value, and not listed", []float64{4}, Figure{Value: 4}},
		"odd":  {"the one in the middle; runs stay in order", []float64{9, 1, 4}, Figure{Value: 4, Runs: []float64{9, 1, 4}}},
		"even": {"between the two in the middle", []float64{1, 9, 3, 5}, Figure{Value: 4, Runs: []float64{1, 9, 3, 5}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, NewMedian("", "", tt.runs, Count)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestMet(t *testing.T) {
	tests := map[string]struct {
		figure     Figure
		met, known bool
	}{
		"no goal": {figure: Figure{Value: 3}},
		"below":   {figure: Figure{Value: 3}.AtMost(4), met: true, known: true},
		"exactly": {figure: Figure{Value: 4}.AtMost(4), met: true, known: true},
		"above":   {figure: Figure{Value: 4.01}.AtMost(4), known: true},
	}
	for name, tt := range tests {
		if met := tt.figure.Met(); (met != nil) != tt.known || met != nil && *met != tt.met {
			t.Errorf("%s: met %v", name, met)
		}
	}
}

func exampleReport() Report {
	return Report{
		Machine: Machine{
			Date: "2026-01-02", Cores: 2, Memory: 24e9, System: "Debian", Kernel: "6.1", Go: "go1.26", Slipway: "v0.1", LoadBefore: 0.1, LoadAfter: 1.5,
			PaceBefore: 150 * time.Microsecond, PaceAfter: 210 * time.Microsecond,
		},
		Figures: []Figure{
			NewMedian("up.first", "up, first time", []float64{4, 6.12812, 5}, Seconds).AtMost(6),
			Figure{Name: "memory", Title: "memory", Value: 812.4, Unit: Megabytes}.AtMost(750),
			{Name: "reads", Title: "reads", Value: 0.25, Unit: PerSecond},
		},
		Steps:     []Step{{Name: "applied", After: 500 * time.Millisecond}, {Name: "node 1 ready", After: 20250 * time.Millisecond}},
		Writes:    []RequestLine{{Request: Request{Verb: "POST", Resource: "secrets"}, Count: 12}},
		Functions: []Function{{Name: "Decide", Nanoseconds: 1234, Bytes: 640, Allocations: 9}},
	}
}

func TestWriteTable(t *testing.T) {
	want := `2026-01-02: 2 cores, 24 GB memory, Debian, Linux 6.1
slipway v0.1, Kubernetes -, go1.26, Docker -
load 0.10 before, 1.50 after; pace 150µs before, 210µs after

FIGURE                          MEASURED  GOAL      MET
up, first time (median of 3)    5 s       ≤ 6 s     yes
memory                          812 MB    ≤ 750 MB  no
reads                           0.25/s
`
	var got bytes.Buffer
	if err := exampleReport().WriteTable(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fields(want), fields(got.String())[:len(fields(want))]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, line := range []string{"applied 0.5 s 0.5 s", "node 1 ready 20.3 s 19.8 s", "secrets POST 12", "Decide 1.2 640 9"} {
		if !strings.Contains(strings.Join(fields(got.String()), "\n"), line) {
			t.Errorf("there is no line %q in:\n%s", line, got.String())
		}
	}
}

func TestWriteTableWarns(t *testing.T) {
	r := Report{Machine: Machine{Cores: 2, LoadBefore: 3}, Unmeasured: []string{"quickstart: no image"}}
	var got bytes.Buffer
	if err := r.WriteTable(&got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"The machine was busy", "not measured: quickstart: no image"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("%q is not in:\n%s", want, got.String())
		}
	}
}

// fields are the lines with single spaces between words.
func fields(text string) []string {
	var out []string
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		out = append(out, strings.Join(strings.Fields(line), " "))
	}
	return out
}

func TestWriteTableFails(t *testing.T) {
	if err := exampleReport().WriteTable(full{}); err == nil {
		t.Error("no error from a writer that fails")
	}
}

func TestWriteJSON(t *testing.T) {
	var got bytes.Buffer
	if err := exampleReport().WriteJSON(&got); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Figures []struct {
			Name  string
			Value float64
			Runs  []float64
			Goal  *float64
			Met   *bool
		}
		Steps  []struct{ Seconds float64 }
		Writes []struct {
			Verb, Resource string
			Count          int
		}
	}
	if err := json.Unmarshal(got.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	switch f := back.Figures; {
	case !cmp.Equal(f[0].Runs, []float64{4, 6.128, 5}):
		t.Errorf("runs of up.first: %v", f[0].Runs)
	case f[0].Met == nil || !*f[0].Met || *f[0].Goal != 6:
		t.Errorf("up.first: %+v", f[0])
	case f[1].Met == nil || *f[1].Met:
		t.Errorf("memory: %+v", f[1])
	case f[2].Met != nil || f[2].Goal != nil:
		t.Errorf("reads has no goal: %+v", f[2])
	}
	if back.Steps[1].Seconds != 20.25 || back.Writes[0].Resource != "secrets" || back.Writes[0].Count != 12 {
		t.Errorf("steps %v, writes %v", back.Steps, back.Writes)
	}
}
