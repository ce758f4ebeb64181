package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/test/bench/template"
)

func TestParseOptions(t *testing.T) {
	o, err := parseOptions([]string{"-slipway", "/opt/slipway", "-time", "1m", "-clusters", "3", "-seed", "7", "-kill", "0s", "-out", "x.json"})
	if err != nil {
		t.Fatal(err)
	}
	want := options{binary: "/opt/slipway", manifest: filepath.Join("examples", "fleet.yaml"), out: "x.json", clusters: 3, length: time.Minute, seed: 7}
	if diff := cmp.Diff(want, o, cmp.AllowUnexported(options{})); diff != "" {
		t.Error(diff)
	}
	for name, args := range map[string][]string{"no cluster": {"-clusters", "0"}, "no time": {"-time", "0s"}, "argument": {"x"}} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Every number the dice can show is some action, and the seed decides which.
func TestChoose(t *testing.T) {
	names := func() []string {
		s := &soak{dice: rand.New(rand.NewPCG(7, 0))}
		var out []string
		for range 1000 {
			name, _ := s.choose()
			out = append(out, name)
		}
		return out
	}
	first := names()
	if diff := cmp.Diff(first, names()); diff != "" {
		t.Errorf("the same seed, other actions: %s", diff)
	}
	seen := map[string]bool{}
	for _, name := range first {
		seen[name] = true
	}
	if len(seen) != 9 {
		t.Errorf("of nine actions a thousand throws chose %v", seen)
	}
}

func TestLeftover(t *testing.T) {
	owned := func(uids ...types.UID) unstructured.Unstructured {
		var o unstructured.Unstructured
		var refs []metav1.OwnerReference
		for _, uid := range uids {
			refs = append(refs, metav1.OwnerReference{APIVersion: "v1", Kind: "Machine", Name: "m", UID: uid})
		}
		o.SetOwnerReferences(refs)
		return o
	}
	deleting := owned()
	now := metav1.Now()
	deleting.SetDeletionTimestamp(&now)
	tests := map[string]struct {
		reason string
		object unstructured.Unstructured
		want   string // part of the answer; empty: nothing is wrong
	}{
		"no owner":        {"made by hand", owned(), ""},
		"owner there":     {"belongs to somebody", owned("here"), ""},
		"one of two":      {"the garbage collector keeps what has one owner left", owned("gone", "here"), ""},
		"owner gone":      {"the garbage collector must have removed it", owned("gone"), "Machine m, which is gone"},
		"being deleted":   {"nothing is deleted any more", deleting, "does not go"},
		"all owners gone": {"as with one", owned("gone", "away"), "which is gone"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := leftover(tt.object, map[types.UID]bool{"here": true})
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q: %s", got, tt.want, tt.reason)
			}
		})
	}
}

func TestLacking(t *testing.T) {
	deployment := func(status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "md", "generation": int64(2)}, "spec": map[string]any{"replicas": int64(2)}, "status": status,
		}}
	}
	whole := map[string]any{
		"observedGeneration": int64(2), "replicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2), "upToDateReplicas": int64(2),
	}
	if got := lacking(deployment(whole)); got != "" {
		t.Errorf("a whole one lacks %s", got)
	}
	for field, want := range map[string]string{"observedGeneration": "was not seen", "availableReplicas": "1 availableReplicas of 2", "replicas": "1 replicas"} {
		less := map[string]any{}
		for k, v := range whole {
			less[k] = v
		}
		less[field] = int64(1)
		if got := lacking(deployment(less)); !strings.Contains(got, want) {
			t.Errorf("%s: got %q", field, got)
		}
	}
}

func TestJudge(t *testing.T) {
	flat := []sample{{ServerMB: 100, ManagerMB: 50}, {ServerMB: 100, ManagerMB: 50}, {ServerMB: 110, ManagerMB: 50}}
	tests := map[string]struct {
		reason string
		report report
		want   string
	}{
		"nothing leaks":       {"a few more are no leak", report{Old: held{Goroutines: 110, Files: 50}, Fresh: held{Goroutines: 100, Files: 40}, Samples: flat}, ""},
		"goroutines":          {"many more are", report{Old: held{Goroutines: 300}, Fresh: held{Goroutines: 100}, Samples: flat}, "goroutines leak"},
		"files":               {"the same", report{Old: held{Files: 300}, Fresh: held{Files: 100}, Samples: flat}, "files leak"},
		"API server's memory": {"doubled", report{Samples: []sample{{}, {ServerMB: 100}, {ServerMB: 200}}}, "API server's memory grows"},
		"manager's memory":    {"doubled", report{Samples: []sample{{}, {ManagerMB: 100}, {ManagerMB: 200}}}, "manager's memory grows"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.report.judge()
			if (tt.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q: %s", err, tt.want, tt.reason)
			}
		})
	}
}

func TestReportIsWritten(t *testing.T) {
	r := report{Seed: 7, Samples: []sample{{After: 1, ManagerMB: 50, ServerMB: 100}}}
	out := filepath.Join(t.TempDir(), "sub", "soak.json")
	var summary bytes.Buffer
	if err := r.write(out, &summary); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(summary.String(), "seed 7") {
		t.Errorf("summary without its seed: %s", summary.String())
	}
	for _, ext := range []string{".json", ".svg"} {
		if _, err := os.Stat(strings.TrimSuffix(out, ".json") + ext); err != nil {
			t.Error(err)
		}
	}
}

// No Machine gives its Node up, whether its MachineDeployment is a user's or a topology's.
func TestPatiently(t *testing.T) {
	for file, path := range map[string][]string{
		"fleet.yaml":               {"spec", "template", "spec", "deletion"},
		"fleet-kubeadm-class.yaml": {"spec", "topology", "workers", "machineDeployments", "0", "deletion"},
	} {
		all, err := template.Read(filepath.Join("..", "..", "..", "examples", file))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := all.Render(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := patiently(objects); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, o := range objects {
			if deletion, ok := at(o.Object, path...).(map[string]any); ok && deletion["nodeDeletionTimeoutSeconds"] == int64(0) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s: %d MachineDeployments wait", file, found)
		}
	}
}

// at is what a path leads to; nil: nothing.
func at(o any, path ...string) any {
	for _, name := range path {
		switch v := o.(type) {
		case map[string]any:
			o = v[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n >= len(v) {
				return nil
			}
			o = v[n]
		default:
			return nil
		}
	}
	return o
}

// It answers as an extension while it is honest, and otherwise in every way that it knows.
func TestLiar(t *testing.T) {
	l, err := newLiar(7)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(l.ca)
	c := &http.Client{Timeout: 200 * time.Millisecond, Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}}
	const discovery = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"
	ask := func() string {
		answer, err := c.Post(l.url+discovery, "application/json", strings.NewReader(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"DiscoveryRequest"}`))
		if err != nil {
			return ""
		}
		defer func() { _ = answer.Body.Close() }()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
		return string(text)
	}
	for range 20 {
		if said := ask(); !strings.Contains(said, `"Success"`) || !strings.Contains(said, "BeforeClusterCreate") {
			t.Fatalf("it is honest: %q", said)
		}
	}
	l.lie(true)
	for range 200 {
		_ = ask()
	}
	for name := range answers() {
		if l.told[name] == 0 {
			t.Errorf("it never answers with %q", name)
		}
	}
}
