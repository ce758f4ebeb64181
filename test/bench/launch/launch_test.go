package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

func TestFlags(t *testing.T) {
	parse := func(args ...string) *benchmark {
		b := &benchmark{}
		if err := b.command().ParseFlags(args); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		return b
	}
	b := parse()
	if b.Out != "dist/bench/launch.json" || b.manifest != "examples/without-class.yaml" || b.class != "examples/quickstart.yaml" ||
		b.kubeadm != "examples/kubeadm.yaml" || b.only != nil || b.runs != 3 || b.idle != time.Minute {
		t.Errorf("defaults: %+v", b)
	}
	for _, args := range [][]string{{"--runs", "0"}, {"--only", "up,upp"}} {
		if err := harness.Try(func() { parse(args...).run(t.Context()) }); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestThreeControlPlanes(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "kubeadm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if m := harness.ParseManifest(threeControlPlanes(string(data))); m.ControlPlanes != 3 || m.Nodes() != 4 {
		t.Errorf("got %+v", m)
	}
	withoutKubeadm, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := harness.Try(func() { threeControlPlanes(string(withoutKubeadm)) }); err == nil {
		t.Error("no error without a KubeadmControlPlane")
	}
}

func TestReadyNodes(t *testing.T) {
	node := func(status string, deleting bool) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}},
		}}
		if deleting {
			o.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-02T03:04:05Z"
		}
		return o
	}
	all := []*unstructured.Unstructured{node("True", false), node("True", true), node("False", false), {Object: map[string]any{}}}
	if got := readyNodes(all); got != 1 {
		t.Errorf("got %d, want 1: one is being deleted, one is not ready, one has no Ready condition", got)
	}
}

func TestPercent(t *testing.T) {
	tests := map[string]struct {
		before, after, within time.Duration
		want                  float64
	}{
		"a fifth of a core":   {time.Second, 3 * time.Second, 10 * time.Second, 20},
		"two cores":           {0, 2 * time.Second, time.Second, 200},
		"no time":             {0, time.Second, 0, 0},
		"a process has ended": {5 * time.Second, time.Second, time.Second, 0},
	}
	for name, tt := range tests {
		if got := percent(harness.Load{CPU: tt.before}, harness.Load{CPU: tt.after}, tt.within); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// recorded are samples of a management cluster that uses half a core and grows, every 200 ms.
func recorded(began time.Time, n int) []usage {
	var out []usage
	for i := range n {
		at := time.Duration(i) * sampleInterval
		out = append(out, usage{At: began.Add(at), Management: harness.Load{Memory: int64(i) * 1e6, CPU: at / 2}})
	}
	return out
}

func TestUsageChart(t *testing.T) {
	began := time.Unix(1000, 0)
	c := usageChart(began, recorded(began, 8), []harness.Step{{Name: "applied", After: 1}})
	if len(c.Marks) != 1 || c.Marks[0].At != 1 || len(c.Panels) != 2 {
		t.Fatalf("got %+v", c)
	}
	memory, processor := c.Panels[0].Lines[0].Points, c.Panels[1].Lines[0].Points
	if len(memory) != 8 || memory[7].Value != 7 || memory[7].At != 1.4 {
		t.Errorf("memory is %v", memory)
	}
	if len(processor) != 8-smoothing || processor[0].Value != 50 {
		t.Errorf("processor use is %v, want 50 from sample %d on", processor, smoothing)
	}
}

func TestPeakMemory(t *testing.T) {
	if got := peakMemory(recorded(time.Unix(1000, 0), 3), managementOf); got != 2 {
		t.Errorf("peak is %v, want 2", got)
	}
}

func TestProbe(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	process := func(pid, parent, arguments string) {
		write(pid+"/stat", pid+" (slipway) S "+parent+" 1 1 0 -1 0 9 0 0 0 100 0 0 0 20 0 9 0 1 2 3"+strings.Repeat(" 1", 40)+"\n")
		write(pid+"/cmdline", strings.ReplaceAll(arguments, " ", "\x00"))
		write(pid+"/status", "VmRSS:\t  300 kB\nRssAnon:\t 200 kB\nRssFile:\t 100 kB\n")
		write(pid+"/smaps_rollup", "55d0-7ffc ---p 00000000 00:00 0 [rollup]\nRss:  300 kB\nPss:  250 kB\n")
	}
	process("10", "1", "slipway up")
	process("11", "10", "slipway control-plane run --config x")
	process("12", "10", "docker version")
	process("13", "11", "child of a hosted control plane")
	p := newProbe(folder, 10)
	if u := p.usage(); u.Management.CPU != 2*time.Second || u.Hosted.CPU != 2*time.Second {
		t.Errorf("got %+v", u)
	}
	own, hosted := p.memory()
	if want := (memory{heap: 400 << 10, file: 200 << 10, share: 500 << 10}); own != want || hosted != want {
		t.Errorf("memory %+v and %+v", own, hosted)
	}
	p.pid = 99
	if err := harness.Try(func() { p.usage() }); err == nil {
		t.Error("no error for a management cluster that has exited")
	}
}

func TestJournal(t *testing.T) {
	j := &journal{start: time.Unix(1000, 0)}
	j.recordAt("second", time.Unix(1002, 0))
	j.recordAt("first", time.Unix(1001, 0))
	j.recordAt("second", time.Unix(1009, 0))
	want := []harness.Step{{Name: "first", After: 1}, {Name: "second", After: 2}}
	if diff := cmp.Diff(want, j.sorted()); diff != "" {
		t.Errorf("in order of time, the first time only (-want +got):\n%s", diff)
	}
}

func TestIdleFigures(t *testing.T) {
	began := time.Unix(1000, 0)
	i := idleness{
		before: usage{At: began}, after: usage{At: began.Add(10 * time.Second), Management: harness.Load{Memory: 800e6, CPU: time.Second}, Hosted: harness.Load{Memory: 300e6, CPU: 2 * time.Second}},
		requests: harness.RequestCounts{
			{Verb: "PUT", Resource: "leases.coordination.k8s.io"}: 10, {Verb: "APPLY", Resource: "clusters/status.cluster.x-k8s.io"}: 5,
			{Verb: "GET", Resource: "nodes"}: 30, {Verb: "GET"}: 1000,
		},
		during: 20 * time.Second,
		memory: memory{heap: 500e6, file: 300e6}, hosted: memory{heap: 200e6, share: 250e6},
	}
	want := map[string]float64{
		"idle.cluster.cpu": 10, "idle.cluster.writes": 0.75, "idle.cluster.leases": 0.5, "idle.cluster.reads": 1.5, "idle.cluster.hosted": 20,
		"memory.cluster": 800, "memory.cluster.heap": 500, "memory.cluster.file": 300, "memory.cluster.hosted": 300,
		"memory.cluster.hosted.heap": 200, "memory.cluster.hosted.share": 250,
	}
	got := map[string]float64{}
	for _, f := range append(i.activityFigures("idle.cluster", ""), i.memoryFigures("memory.cluster", "")...) {
		got[f.Name] = f.Value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// script writes a shell script in place of slipway.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slipway")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestMeasureUp runs a script that records its arguments.
func TestMeasureUp(t *testing.T) {
	diary := filepath.Join(t.TempDir(), "diary")
	b := &benchmark{Options: harness.Options{Binary: script(t, `echo "$1 $2" >> `+diary)}, runs: 2}
	b.measureUp(t.Context())
	text, err := os.ReadFile(diary)
	if err != nil {
		t.Fatal(err)
	}
	once := "up -d\ndown --data-dir\nup -d\ndown --delete\n"
	if diff := cmp.Diff(once+once, string(text)); diff != "" {
		t.Errorf("what was called (-want +got):\n%s", diff)
	}
	if len(b.Report.Figures) != 3 || len(b.Report.Figures[0].Runs) != 2 {
		t.Errorf("figures are %+v", b.Report.Figures)
	}
}

// TestMeasureContinues checks that a failure is reported with its reason and the installation is removed.
func TestMeasureContinues(t *testing.T) {
	diary := filepath.Join(t.TempDir(), "diary")
	binary := script(t, `echo "$1 $2" >> `+diary+`; [ "$1" = down ] || { echo "port taken" >&2; exit 1; }`)
	b := &benchmark{Options: harness.Options{Binary: binary}, runs: 1, only: []string{"up"}}
	b.measure(t.Context())
	if len(b.Report.Unmeasured) != 1 || !strings.Contains(b.Report.Unmeasured[0], "port taken") || len(b.Report.Figures) != 0 {
		t.Errorf("got %+v", b.Report)
	}
	if text, _ := os.ReadFile(diary); string(text) != "up -d\ndown --delete\n" {
		t.Errorf("called %q", text)
	}
}
