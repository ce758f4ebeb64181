package soak

import (
	"io"
	"math/rand/v2"
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

	"github.com/slipwayhq/slipway/test/bench/harness"
)

func TestFlags(t *testing.T) {
	parse := func(args ...string) (*soak, error) {
		s := &soak{}
		return s, s.command().ParseFlags(args)
	}
	s, err := parse("--time", "1m", "--clusters", "3", "--seed", "7", "--kill", "0s", "--out", "x.json")
	if err != nil || s.manifest != filepath.Join("examples", "fleet.yaml") || s.Out != "x.json" || s.clusters != 3 || s.length != time.Minute || s.seed != 7 || s.kill != 0 {
		t.Errorf("got %+v, %v", s, err)
	}
	if s, err := parse(); err != nil || s.seed == 0 || s.kill != time.Minute {
		t.Errorf("defaults: %+v, %v", s, err)
	}
	if s, _ := parse("--clusters", "0"); harness.Try(func() { s.run(t.Context()) }) == nil {
		t.Error("no error without a cluster")
	}
}

// The weights add up to 100, and the seed determines the actions.
func TestChoose(t *testing.T) {
	names := func() []string {
		s := &soak{random: rand.New(rand.NewPCG(7, 0))}
		var out []string
		for range 1000 {
			out = append(out, s.choose().name)
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
	weights := 0
	for _, a := range (&soak{}).actions() {
		weights += a.weight
	}
	if len(seen) != 9 || weights != 100 {
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
		want   string // part of the description; empty: the object may exist
	}{
		"no owner":        {"created by a user", owned(), ""},
		"owner there":     {"one owner exists", owned("here"), ""},
		"one of two":      {"the garbage collector does not delete an object with an existing owner", owned("gone", "here"), ""},
		"owner gone":      {"the garbage collector must have removed it", owned("gone"), "Machine m, which is gone"},
		"being deleted":   {"all deletions must be complete", deleting, "still exists"},
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

func TestMissingReplicas(t *testing.T) {
	deployment := func(status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "md", "generation": int64(2)}, "spec": map[string]any{"replicas": int64(2)}, "status": status,
		}}
	}
	whole := map[string]any{
		"observedGeneration": int64(2), "replicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2), "upToDateReplicas": int64(2),
	}
	if got := missingReplicas(deployment(whole)); got != "" {
		t.Errorf("missing replicas: %s, want none", got)
	}
	for field, want := range map[string]string{"observedGeneration": "is not observed", "availableReplicas": "1 availableReplicas of 2", "replicas": "1 replicas"} {
		less := map[string]any{}
		for k, v := range whole {
			less[k] = v
		}
		less[field] = int64(1)
		if got := missingReplicas(deployment(less)); !strings.Contains(got, want) {
			t.Errorf("%s: got %q", field, got)
		}
	}
}

func TestCheckLeaks(t *testing.T) {
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
			err := tt.report.checkLeaks()
			if (tt.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q: %s", err, tt.want, tt.reason)
			}
		})
	}
}

func TestReportIsWritten(t *testing.T) {
	r := report{Seed: 7, Samples: []sample{{After: 1, ManagerMB: 50, ServerMB: 100}}}
	out := filepath.Join(t.TempDir(), "sub", "soak.json")
	r.write(out)
	if !strings.Contains(r.summary(), "seed 7") {
		t.Errorf("summary without its seed: %s", r.summary())
	}
	for _, ext := range []string{".json", ".svg"} {
		if _, err := os.Stat(strings.TrimSuffix(out, ".json") + ext); err != nil {
			t.Error(err)
		}
	}
}

// No Machine gives its Node up, whether its MachineDeployment is a user's or a topology's.
func TestWaitForNodeDeletion(t *testing.T) {
	for file, path := range map[string][]string{
		"fleet.yaml":               {"spec", "template", "spec", "deletion"},
		"fleet-kubeadm-class.yaml": {"spec", "topology", "workers", "machineDeployments", "0", "deletion"},
	} {
		objects, _ := harness.ReadTemplate(filepath.Join("..", "..", "..", "examples", file)).Render(0)
		waitForNodeDeletion(objects)
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

// The extension responds correctly until it is faulty, and then with every invalid response.
func TestFaultyExtension(t *testing.T) {
	l := startExtension(7)
	t.Cleanup(l.close)
	c := l.server.Client()
	c.Timeout = 200 * time.Millisecond
	const discovery = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"
	call := func() string {
		response, err := c.Post(l.server.URL+discovery, "application/json", strings.NewReader(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"DiscoveryRequest"}`))
		if err != nil {
			return ""
		}
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16))
		return string(text)
	}
	for range 20 {
		if text := call(); !strings.Contains(text, `"Success"`) || !strings.Contains(text, "BeforeClusterCreate") {
			t.Fatalf("response without faults: %q", text)
		}
	}
	l.setFaulty(true)
	for range 200 {
		_ = call()
	}
	for name := range invalidResponses() {
		if l.invalid[name] == 0 {
			t.Errorf("it never responds with %q", name)
		}
	}
}
