package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/test/bench/result"
)

func TestParseOptions(t *testing.T) {
	o, err := parseOptions([]string{"-slipway", "/opt/slipway", "-clusters", "5", "-sick", "1", "-rounds", "2", "-phase", "2s"})
	if err != nil {
		t.Fatal(err)
	}
	want := options{
		binary: "/opt/slipway", out: filepath.Join("dist", "bench", "isolation.json"), manifest: filepath.Join("examples", "fleet.yaml"),
		clusters: 5, sick: 1, workers: 10, rounds: 2, phase: 2 * time.Second, every: time.Second, patience: time.Hour,
	}
	if diff := gocmp.Diff(want, o, gocmp.AllowUnexported(options{})); diff != "" {
		t.Error(diff)
	}
	for name, args := range map[string][]string{
		"argument": {"x"}, "nobody is well": {"-clusters", "3", "-sick", "3"}, "nobody is sick": {"-sick", "0"}, "one round": {"-rounds", "1"},
		"no change in a phase": {"-phase", "2s", "-every", "3s"}, "too many changes": {"-every", "1ms"}, "no workers": {"-workers", "0"},
		"negative": {"-patience", "-1s"},
	} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestProbe(t *testing.T) {
	t0 := time.Unix(1e9, 0)
	p := newProbe(0, nil, true)
	for i := range 3 {
		p.begin(t0.Add(time.Duration(i) * time.Second))
	}
	p.accepted(1, t0.Add(2*time.Second))
	p.accepted(2, t0.Add(3*time.Second))
	p.arrived(2, t0.Add(5*time.Second))
	took := p.harvest()
	slices.SortFunc(took, func(a, b lapse) int { return cmp.Compare(a.whole, b.whole) })
	want := []lapse{{whole: 4 * time.Second, own: 2 * time.Second}, {whole: 5 * time.Second, own: 3 * time.Second}}
	if diff := gocmp.Diff(want, took, gocmp.AllowUnexported(lapse{})); diff != "" {
		t.Errorf("a change that was replaced arrived with the one that replaced it: %s", diff)
	}
	if p.left() != 1 || len(p.harvest()) != 0 {
		t.Error("the third is left, and nothing is counted twice")
	}
	p.arrived(3, t0.Add(6*time.Second))
	if diff := gocmp.Diff([]lapse{{whole: 4 * time.Second}}, p.harvest(), gocmp.AllowUnexported(lapse{})); diff != "" {
		t.Errorf("a change that arrives before the management cluster shows it took none of the time after: %s", diff)
	}
	p.accepted(3, t0.Add(7*time.Second))
	sick := newProbe(0, nil, false)
	if sick.begin(t0) != 1 || sick.begin(t0) != 2 || sick.left() != 0 {
		t.Error("a cluster that is not measured counts changes, and waits for none")
	}
}

func TestSicknessesEnd(t *testing.T) {
	for _, s := range append(sicknesses(), well()) {
		data, err := s.patch()
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Metadata struct {
				Annotations map[string]*string `json:"annotations"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{hostedv1.APIDownAnnotation, hostedv1.APISlowAnnotation, hostedv1.APIErrorsAnnotation} {
			value, said := got.Metadata.Annotations[key]
			if want, sick := s.annotations[key]; !said || (value != nil) != sick || sick && *value != want {
				t.Errorf("%s: annotation %s is %v", s.name, key, value)
			}
		}
	}
}

func TestIsHealthy(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	if !isHealthy(context.Background(), server.Client(), server.URL) {
		t.Error("it answers")
	}
	code = http.StatusInternalServerError
	if isHealthy(context.Background(), server.Client(), server.URL) {
		t.Error("an error is an answer of one that is not well")
	}
	server.Close()
	if isHealthy(context.Background(), server.Client(), server.URL) {
		t.Error("nobody answers")
	}
}

// of makes a hundred changes of which the slowest took this long, half of it after the management cluster had shown it.
func of(slowest time.Duration) []lapse {
	out := make([]lapse, 99)
	for i := range out {
		out[i] = lapse{whole: time.Millisecond, own: time.Millisecond}
	}
	return append(out, lapse{whole: slowest, own: slowest / 2})
}

func example() findings {
	var out []phase
	for round := range 2 {
		for _, s := range sicknesses() {
			slowest := 10 * time.Millisecond
			if s.name == "slow" { // the phases before it are as slow: that is the machine, and too rare for the p99 of all of them
				slowest = 30 * time.Millisecond
			}
			out = append(out,
				phase{sickness: "well", before: s.name, round: round, took: of(slowest)},
				phase{sickness: s.name, round: round, took: of(slowest)})
		}
	}
	out[3].stolen = 0.015
	return findings{phases: out, again: 2, held: time.Minute}
}

func TestFigures(t *testing.T) {
	got := map[string]result.Figure{}
	for _, f := range figures(example()) {
		got[f.Name] = f
	}
	for name, want := range map[string]float64{
		"isolation.well.p50": 1, "isolation.well.p99": 10, "isolation.well.changes": 800, "isolation.slow.p99": 30, "isolation.slow.changes": 200,
		"isolation.slow.ratio": 3, "isolation.down.ratio": 1, "isolation.failing.ratio": 1, "isolation.hanging.ratio": 1,
		"isolation.slow.control": 3, "isolation.down.control": 1, "isolation.slow.own.p99": 15, "isolation.slow.own.ratio": 3, "isolation.slow.ratio.low": 3, "isolation.slow.ratio.high": 3,
		"isolation.stolen": 1.5, "isolation.again": 2, "isolation.held": 60,
	} {
		if f, ok := got[name]; !ok || f.Value < want*0.999 || f.Value > want*1.001 {
			t.Errorf("%s is %+v, want %v", name, f, want)
		}
	}
	for name, want := range map[string]bool{"isolation.slow.ratio": false, "isolation.down.ratio": true} {
		if met, known := got[name].Met(); !known || met != want {
			t.Errorf("%s: goal met %v, known %v", name, met, known)
		}
	}
}

// One round of eight with a stall decides a p99: the interval says so.
func TestInterval(t *testing.T) {
	var sick, healthy []phase
	for round := range 8 {
		took := of(10 * time.Millisecond)
		healthy = append(healthy, phase{round: round, took: took})
		if round == 0 {
			took = slices.Repeat([]lapse{{whole: 300 * time.Millisecond}}, 100)
		}
		sick = append(sick, phase{round: round, took: took})
	}
	low, high := interval(sick, healthy)
	if low != 1 || high != 30 {
		t.Errorf("without the round the ratio is 1, with it 30; the interval is %v to %v", low, high)
	}
	if again, _ := interval(sick, healthy); again != low {
		t.Errorf("%v, and then %v of the same phases", low, again)
	}
	if low, high := interval(nil, nil); low != 0 || high != 0 {
		t.Errorf("nothing was measured: %v to %v", low, high)
	}
}

func TestRatioOfNothing(t *testing.T) {
	if ratio(nil, nil, whole) != 0 {
		t.Error("want zero")
	}
}

func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "sub")
	var table bytes.Buffer
	o := outputs{json: filepath.Join(folder, "x.json"), changes: filepath.Join(folder, "x.csv"), drawing: filepath.Join(folder, "x.svg"), table: &table}
	if err := write(example(), result.Machine{Cores: 2}, o); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(o.json)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Figures []struct {
			Name string
			Met  *bool
		}
	}
	if err := json.Unmarshal(data, &back); err != nil || len(back.Figures) == 0 {
		t.Errorf("%v in %s", err, data)
	}
	changes, err := os.ReadFile(o.changes)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(changes)), "\n")
	if len(lines) != 1601 || lines[0] != "round,sickness,before,ms,own_ms" || lines[1600] != "2,failing,,10.000,5.000" || lines[100] != "1,well,down,10.000,5.000" {
		t.Errorf("%d lines of changes: %q, %q … %q", len(lines), lines[0], lines[100], lines[len(lines)-1])
	}
	drawing, err := os.ReadFile(o.drawing)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sicknesses() {
		if !bytes.Contains(drawing, []byte(s.title)) || !bytes.Contains(table.Bytes(), []byte(s.title)) {
			t.Errorf("%s is missing in the drawing or the table", s.name)
		}
	}
}
