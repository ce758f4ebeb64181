package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
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

func TestAtMost(t *testing.T) {
	for value, want := range map[float64]bool{3: true, 4: true, 4.01: false} {
		if f := NewFigure("", "", value, Count).AtMost(4); *f.Goal != 4 || *f.Met != want {
			t.Errorf("%v: goal %v, met %v", value, *f.Goal, *f.Met)
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
		Steps:  []Step{{Name: "applied", After: 0.5}, {Name: "node 1 ready", After: 20.25}},
		Writes: []RequestLine{{Request: Request{Verb: "POST", Resource: "secrets"}, Count: 12}},
	}
}

func TestTable(t *testing.T) {
	want := `2026-01-02: 2 cores, 24 GB memory, Debian, Linux 6.1
slipway v0.1, Kubernetes -, go1.26, Docker -
load 0.10 before, 1.50 after; pace 150µs before, 210µs after

FIGURE                          MEASURED  GOAL      MET
up, first time (median of 3)    5 s       ≤ 6 s     yes
memory                          812 MB    ≤ 750 MB  no
reads                           0.25/s
`
	got := exampleReport().Table()
	if diff := cmp.Diff(fields(want), fields(got)[:len(fields(want))]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, line := range []string{"applied 0.5 s 0.5 s", "node 1 ready 20.3 s 19.8 s", "secrets POST 12"} {
		if !strings.Contains(strings.Join(fields(got), "\n"), line) {
			t.Errorf("there is no line %q in:\n%s", line, got)
		}
	}
}

func TestTableWarns(t *testing.T) {
	r := Report{Machine: Machine{Cores: 2, LoadBefore: 3}, Unmeasured: []string{"quickstart: no image"}}
	got := r.Table()
	for _, want := range []string{"The machine was busy", "not measured: quickstart: no image"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
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

func TestWriteJSON(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report.json")
	WriteJSON(name, exampleReport())
	got, err := os.ReadFile(name)
	if err != nil {
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
	if err := json.Unmarshal(got, &back); err != nil {
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
