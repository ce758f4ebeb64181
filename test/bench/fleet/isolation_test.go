package fleet

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/test/bench/harness"
)

func TestIsolationFlags(t *testing.T) {
	parse := func(args ...string) (*isolation, error) {
		b := &isolation{}
		return b, b.command().ParseFlags(args)
	}
	b, err := parse("--clusters", "5", "--sick", "1", "--rounds", "2", "--phase", "2s")
	if err != nil || b.Out != filepath.Join("dist", "bench", "isolation.json") || b.manifest != filepath.Join("examples", "fleet.yaml") ||
		b.clusters != 5 || b.sick != 1 || b.workers != 10 || b.rounds != 2 || b.phase != 2*time.Second || b.every != time.Second || b.patience != time.Hour {
		t.Errorf("got %+v, %v", b, err)
	}
	for name, args := range map[string][]string{
		"all faulty": {"--clusters", "3", "--sick", "3"}, "no change in a phase": {"--phase", "2s", "--every", "3s"},
		"none faulty": {"--sick", "0"}, "one round": {"--rounds", "1"}, "too many changes": {"--every", "0s"}, "no workers": {"--workers", "0"},
	} {
		b, err := parse(args...)
		if err == nil {
			err = harness.Try(func() { b.run(t.Context()) })
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestProbe(t *testing.T) {
	t0 := time.Unix(1e9, 0)
	p := newProbe(0, true)
	for i := range 3 {
		p.begin(t0.Add(time.Duration(i) * time.Second))
	}
	p.arrive(2, t0.Add(5*time.Second))
	took, pending := p.take()
	slices.Sort(took)
	if diff := cmp.Diff([]time.Duration{4 * time.Second, 5 * time.Second}, took); diff != "" {
		t.Errorf("a change that was replaced arrives with its replacement: %s", diff)
	}
	if again, _ := p.take(); pending != 1 || len(again) != 0 {
		t.Error("the third change is pending, and nothing is counted twice")
	}
	sick := newProbe(0, false)
	if sick.begin(t0) != 1 || sick.begin(t0) != 2 || len(sick.pending) != 0 {
		t.Error("a cluster that is not measured counts changes, and waits for none")
	}
}

func TestFaultsReplaceEachOther(t *testing.T) {
	for _, f := range append(faults(), noFault()) {
		got := f.annotations()
		for _, key := range []string{hostedv1.APIDownAnnotation, hostedv1.APISlowAnnotation, hostedv1.APIErrorsAnnotation} {
			value, set := got[key]
			if !set || (key == f.annotation) != (value != nil) || value != nil && value != f.value {
				t.Errorf("%s: annotation %s is %v", f.name, key, value)
			}
		}
	}
}

func TestIsHealthy(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	c, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if !isHealthy(t.Context(), c) {
		t.Error("a server that is ready is healthy")
	}
	code = http.StatusInternalServerError
	if isHealthy(t.Context(), c) {
		t.Error("a server that responds with an error is not healthy")
	}
	server.Close()
	if isHealthy(t.Context(), c) {
		t.Error("a server that does not respond is not healthy")
	}
}

// latenciesWith returns the latencies of a hundred changes, of which the slowest took this long.
func latenciesWith(slowest time.Duration) []time.Duration {
	return append(slices.Repeat([]time.Duration{time.Millisecond}, 99), slowest)
}

func example() phases {
	var out phases
	for round := range 2 {
		for _, s := range faults() {
			slowest := 10 * time.Millisecond
			out = append(out, phase{fault: "well", before: s.name, round: round, latencies: latenciesWith(slowest)})
			if s.name == "slow" {
				slowest = 30 * time.Millisecond
			}
			out = append(out,
				phase{fault: s.name, round: round, latencies: latenciesWith(slowest)})
		}
	}
	out[3].stolen = 0.015
	return out
}

func TestFigures(t *testing.T) {
	got := map[string]harness.Figure{}
	for _, f := range example().figures(&harness.Host{Repeats: 2, Waited: time.Minute}) {
		got[f.Name] = f
	}
	for name, want := range map[string]float64{
		"isolation.well.p50": 1, "isolation.well.p99": 10, "isolation.well.changes": 800, "isolation.slow.p99": 30, "isolation.slow.changes": 200,
		"isolation.slow.ratio": 3, "isolation.down.ratio": 1, "isolation.failing.ratio": 1, "isolation.hanging.ratio": 1,
		"isolation.slow.ratio.low": 3, "isolation.slow.ratio.high": 3,
		"isolation.stolen": 1.5, "isolation.again": 2, "isolation.held": 60,
	} {
		if f, ok := got[name]; !ok || f.Value < want*0.999 || f.Value > want*1.001 {
			t.Errorf("%s is %+v, want %v", name, f, want)
		}
	}
	for name, want := range map[string]bool{"isolation.slow.ratio": false, "isolation.down.ratio": true} {
		if met := got[name].Met; met == nil || *met != want {
			t.Errorf("%s: goal met %v", name, met)
		}
	}
}

// One round of eight with a stall determines a p99. The interval shows it.
func TestInterval(t *testing.T) {
	var sick, healthy phases
	for round := range 8 {
		took := latenciesWith(10 * time.Millisecond)
		healthy = append(healthy, phase{round: round, latencies: took})
		if round == 0 {
			took = slices.Repeat([]time.Duration{300 * time.Millisecond}, 100)
		}
		sick = append(sick, phase{round: round, latencies: took})
	}
	low, high := sick.interval(healthy)
	if low != 1 || high != 30 {
		t.Errorf("without the round the ratio is 1, with it 30; the interval is %v to %v", low, high)
	}
	if again, _ := sick.interval(healthy); again != low {
		t.Errorf("%v, and then %v of the same phases", low, again)
	}
	if low, high := phases(nil).interval(nil); low != 0 || high != 0 {
		t.Errorf("nothing was measured: %v to %v", low, high)
	}
}

func TestRatioOfNothing(t *testing.T) {
	if phases(nil).ratio(nil) != 0 {
		t.Error("want zero")
	}
}

func TestChart(t *testing.T) {
	chart := example().chart().SVG()
	for _, f := range faults() {
		if !strings.Contains(chart, f.title) {
			t.Errorf("%s is missing in the chart", f.name)
		}
	}
}
