package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/test/bench/procfs"
	"github.com/slipwayhq/slipway/test/bench/requests"
	"github.com/slipwayhq/slipway/test/bench/result"
)

func TestParseOptions(t *testing.T) {
	tests := map[string]struct {
		reason  string
		args    []string
		want    options
		wantErr bool
	}{
		"defaults": {
			reason: "everything is measured; a relative path still holds when a verb runs elsewhere",
			args:   []string{"-slipway", "/opt/slipway"},
			want: options{
				binary: "/opt/slipway", out: "dist/bench/launch.json", manifest: "examples/without-class.yaml", class: "examples/quickstart.yaml", kubeadm: "examples/kubeadm.yaml", only: groups(), runs: 3, idle: time.Minute,
			},
		},
		"some": {
			reason: "a list of names",
			args:   []string{"-slipway", "/opt/slipway", "-only", "up,idle", "-out", "x.json", "-manifest", "m.yaml", "-runs", "1", "-idle", "10s"},
			want:   options{binary: "/opt/slipway", out: "x.json", manifest: "m.yaml", class: "examples/quickstart.yaml", kubeadm: "examples/kubeadm.yaml", only: []string{"up", "idle"}, runs: 1, idle: 10 * time.Second},
		},
		"unknown":   {reason: "a name that is not known measures nothing in silence", args: []string{"-slipway", "/opt/slipway", "-only", "upp"}, wantErr: true},
		"no run":    {reason: "there is no median of nothing", args: []string{"-slipway", "/opt/slipway", "-runs", "0"}, wantErr: true},
		"arguments": {reason: "there are none", args: []string{"-slipway", "/opt/slipway", "up"}, wantErr: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseOptions(tt.args)
			if (err != nil) != tt.wantErr {
				t.Fatalf("%s: error is %v", tt.reason, err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// TestParseManifest reads the manifest that is measured by default, so that it cannot change into one that is not understood.
func TestParseManifest(t *testing.T) {
	data, err := os.ReadFile("../../examples/without-class.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseManifest(data)
	if diff := cmp.Diff(subject{Namespace: "default", Cluster: "quickstart", Pool: "quickstart-workers", Replicas: 2}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if data, err = os.ReadFile("../../examples/quickstart.yaml"); err != nil {
		t.Fatal(err)
	}
	got, err = parseManifest(data)
	if diff := cmp.Diff(subject{Namespace: "default", Cluster: "quickstart", Pool: "quickstart-workers", Replicas: 2, Deployment: true}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if data, err = os.ReadFile("../../examples/kubeadm.yaml"); err != nil {
		t.Fatal(err)
	}
	for replicas, text := range map[int]func() (string, error){
		1: func() (string, error) { return string(data), nil },
		3: func() (string, error) { return scaled(string(data), 3) },
	} {
		manifest, err := text()
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseManifest([]byte(manifest))
		want := subject{Namespace: "default", Cluster: "demo", Pool: "demo-md-0", Replicas: 1, Deployment: true, ControlPlanes: replicas}
		if diff := cmp.Diff(want, got); diff != "" || err != nil || got.nodes() != replicas+1 {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if _, err := scaled("kind: Cluster\nmetadata: {name: a}\n", 3); err == nil {
		t.Error("a manifest without a KubeadmControlPlane is scaled")
	}
	for name, text := range map[string]string{
		"no pool":     "kind: Cluster\nmetadata: {name: a}\n",
		"no cluster":  "kind: MachinePool\nmetadata: {name: a}\nspec: {replicas: 1}\n",
		"no replicas": "kind: Cluster\nmetadata: {name: a}\n---\nkind: MachinePool\nmetadata: {name: a}\nspec: {replicas: 0}\n",
		"not YAML":    "kind: [",
	} {
		if _, err := parseManifest([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
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
		t.Errorf("got %d, want 1: one is being deleted, one is not ready, one does not say", got)
	}
}

func TestDivide(t *testing.T) {
	page := int64(os.Getpagesize())
	tree := []procfs.Process{
		{PID: 10, Parent: 1, Pages: 100, CPU: time.Second},
		{PID: 11, Parent: 10, Pages: 10, CPU: 2 * time.Second}, // hosted
		{PID: 12, Parent: 10, Pages: 1, CPU: 3 * time.Second},
		{PID: 13, Parent: 11, Pages: 1000, CPU: 4 * time.Second}, // below a hosted one
	}
	want := usage{Management: load{101 * page, 4 * time.Second}, Hosted: load{1010 * page, 6 * time.Second}}
	if diff := cmp.Diff(want, divide(tree, func(pid int) bool { return pid == 11 })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
		if got := percent(load{CPU: tt.before}, load{CPU: tt.after}, tt.within); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// recorded are samples of a management cluster that uses half a core and grows, every 200 ms.
func recorded(began time.Time, n int) []usage {
	var out []usage
	for i := range n {
		at := time.Duration(i) * every
		out = append(out, usage{At: began.Add(at), Management: load{Memory: int64(i) * 1e6, CPU: at / 2}})
	}
	return out
}

func TestDraw(t *testing.T) {
	began := time.Unix(1000, 0)
	c := draw(began, recorded(began, 8), []result.Step{{Name: "applied", After: time.Second}})
	if len(c.Marks) != 1 || c.Marks[0].At != 1 || len(c.Panels) != 2 {
		t.Fatalf("got %+v", c)
	}
	memory, processor := c.Panels[0].Lines[0].Points, c.Panels[1].Lines[0].Points
	if len(memory) != 8 || memory[7].Value != 7 || memory[7].At != 1.4 {
		t.Errorf("memory is %v", memory)
	}
	if len(processor) != 8-smooth || processor[0].Value != 50 {
		t.Errorf("processor use is %v, want 50 from sample %d on", processor, smooth)
	}
}

func TestListAndMost(t *testing.T) {
	began := time.Unix(1000, 0)
	samples := recorded(began, 3)
	var out bytes.Buffer
	if err := list(&out, began, samples); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("rows %v, error %v", rows, err)
	}
	if diff := cmp.Diff([]string{"0.40", "2.0", "0.20", "0.0", "0.00"}, rows[3]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := most(samples, func(u usage) load { return u.Management }); got != 2 {
		t.Errorf("most is %v, want 2", got)
	}
}

func TestProbe(t *testing.T) {
	line := func(pid, parent string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(pid + " (slipway) S " + parent + " 1 1 0 -1 0 9 0 0 0 100 0 0 0 20 0 9 0 1 2 3 4 5 6\n")}
	}
	p := newProbe(10)
	p.proc = fstest.MapFS{
		"10/stat": line("10", "1"), "10/cmdline": {Data: []byte("slipway\x00up\x00")},
		"11/stat": line("11", "10"), "11/cmdline": {Data: []byte("slipway\x00control-plane\x00run\x00--config\x00x\x00")},
		"12/stat": line("12", "10"), "12/cmdline": {Data: []byte("docker\x00version\x00")},
	}
	u, err := p.read()
	if err != nil || u.Management.CPU != 2*time.Second || u.Hosted.CPU != time.Second {
		t.Errorf("got %+v, %v", u, err)
	}
	p.pid = 99
	if _, err := p.read(); err == nil {
		t.Error("no error for a management cluster that is gone")
	}
}

func TestRecord(t *testing.T) {
	p := newProbe(os.Getpid())
	r := p.record(t.Context())
	if samples, err := r.end(); err != nil || len(samples) == 0 || samples[0].Management.Memory == 0 {
		t.Errorf("got %v, %v: want at least one sample of this process", samples, err)
	}
}

func TestJournal(t *testing.T) {
	j := &journal{began: time.Unix(1000, 0)}
	j.noteAt("second", time.Unix(1002, 0))
	j.noteAt("first", time.Unix(1001, 0))
	j.noteAt("second", time.Unix(1009, 0))
	want := []result.Step{{Name: "first", After: time.Second}, {Name: "second", After: 2 * time.Second}}
	if diff := cmp.Diff(want, j.inOrder()); diff != "" {
		t.Errorf("in order of time, the first time only (-want +got):\n%s", diff)
	}
	if _, err := j.after("third"); err == nil {
		t.Error("no error for a step that did not happen")
	}
}

func TestIdleFigures(t *testing.T) {
	began := time.Unix(1000, 0)
	i := idleness{
		before: usage{At: began}, after: usage{At: began.Add(10 * time.Second), Management: load{800e6, time.Second}, Hosted: load{300e6, 2 * time.Second}},
		asked: requests.Counts{
			{Verb: "PUT", Resource: "leases.coordination.k8s.io"}: 10, {Verb: "APPLY", Resource: "clusters/status.cluster.x-k8s.io"}: 5,
			{Verb: "GET", Resource: "nodes"}: 30, {Verb: "GET"}: 1000,
		},
		during: 20 * time.Second,
		memory: procfs.Memory{Anonymous: 500e6, File: 300e6}, hosted: procfs.Memory{Anonymous: 200e6, Share: 250e6},
	}
	want := map[string]float64{
		"idle.cluster.cpu": 10, "idle.cluster.writes": 0.75, "idle.cluster.leases": 0.5, "idle.cluster.reads": 1.5, "idle.cluster.hosted": 20,
		"memory.cluster": 800, "memory.cluster.heap": 500, "memory.cluster.file": 300, "memory.cluster.hosted": 300,
		"memory.cluster.hosted.heap": 200, "memory.cluster.hosted.share": 250,
	}
	got := map[string]float64{}
	for _, f := range append(idleFigures(populated(), i), memoryFigures(populated(), i)...) {
		got[f.Name] = f.Value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseFunctions(t *testing.T) {
	text := `goos: linux
pkg: github.com/slipwayhq/slipway/internal/controllers/machinepool
BenchmarkDecide/three-2   	   10000	    123.5 ns/op	     640 B/op	       9 allocs/op
PASS
ok  	github.com/slipwayhq/slipway/internal/controllers/machinepool	1.2s
pkg: github.com/slipwayhq/slipway/internal/condition
BenchmarkEvaluate-2   	   10000	    99 ns/op	     64 B/op	       1 allocs/op
`
	got, err := parseFunctions(text)
	want := []result.Function{
		{Name: "condition.Evaluate", Nanoseconds: 99, Bytes: 64, Allocations: 1},
		{Name: "machinepool.Decide/three", Nanoseconds: 123.5, Bytes: 640, Allocations: 9},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, text := range map[string]string{"none": "PASS\n", "no memory": "BenchmarkX-2 10 99 ns/op\n", "not a benchmark": "BenchmarkX failed\n"} {
		if got, err := parseFunctions(text); err == nil {
			t.Errorf("%s: no error but %v", name, got)
		}
	}
}

func TestParseStatus(t *testing.T) {
	if pid, err := parsePID([]byte(`{"state":"Running","management":{"pid":4711}}`)); pid != 4711 || err != nil {
		t.Errorf("pid %d, %v", pid, err)
	}
	if _, err := parsePID([]byte(`{"state":"Stopped"}`)); err == nil || !strings.Contains(err.Error(), "Stopped") {
		t.Errorf("a management cluster that is stopped: %v", err)
	}
}

// script writes a shell script that stands for slipway.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slipway")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestMeasureUp runs with a program that does nothing but keep a diary.
func TestMeasureUp(t *testing.T) {
	diary := filepath.Join(t.TempDir(), "diary")
	b := &bench{options: options{binary: script(t, `echo "$1 $2" >> `+diary), runs: 2}, log: &bytes.Buffer{}}
	if err := b.measureUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(diary)
	if err != nil {
		t.Fatal(err)
	}
	once := "up -d\ndown --data-dir\nup -d\ndown --delete\n"
	if diff := cmp.Diff(once+once, string(text)); diff != "" {
		t.Errorf("what was called (-want +got):\n%s", diff)
	}
	if len(b.report.Figures) != 3 || len(b.report.Figures[0].Runs) != 2 {
		t.Errorf("figures are %+v", b.report.Figures)
	}
}

// TestMeasureGoesOn: what fails is said, with the reason, the installation is removed, and the run fails in the end.
func TestMeasureGoesOn(t *testing.T) {
	diary := filepath.Join(t.TempDir(), "diary")
	binary := script(t, `echo "$1 $2" >> `+diary+`; [ "$1" = down ] || { echo "port taken" >&2; exit 1; }`)
	b := &bench{options: options{binary: binary, runs: 1, only: []string{groupUp}}, log: &bytes.Buffer{}}
	b.measure(t.Context())
	if len(b.report.Unmeasured) != 1 || !strings.Contains(b.report.Unmeasured[0], "port taken") || len(b.report.Figures) != 0 {
		t.Errorf("got %+v", b.report)
	}
	if text, _ := os.ReadFile(diary); string(text) != "up -d\ndown --delete\n" {
		t.Errorf("called %q", text)
	}
}

// TestRemoveAfterInterrupt: an interrupted run leaves nothing.
func TestRemoveAfterInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, err := newInstallation(script(t, "exit 0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := in.remove(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(in.folder); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", in.folder, err)
	}
}

func TestWrite(t *testing.T) {
	began := time.Unix(1000, 0)
	b := &bench{options: options{out: filepath.Join(t.TempDir(), "new", "run.json")}, began: began, samples: recorded(began, 8)}
	if err := b.write(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{".json", ".svg", ".csv"} {
		if data, err := os.ReadFile(strings.TrimSuffix(b.out, ".json") + suffix); err != nil || len(data) == 0 {
			t.Errorf("%s: %d bytes, %v", suffix, len(data), err)
		}
	}
}
