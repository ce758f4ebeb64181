package move_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/fault"
)

// MV-12: objects go to one file each, the source is resumed; from there they are created, with their owners, and resumed. Both are
// killed at every write, and complete when they are run again.
func TestDirectory(t *testing.T) {
	o := instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})
	for n := 1; ; n++ {
		source, target := management(nil, world()...), management(nil)
		before := contents(t, source)
		dir := filepath.Join(t.TempDir(), "out")
		p := &process{killAt: n}
		_, err := move.ToDirectory(t.Context(), p.through(source), dir, o)
		if errors.Is(err, errKilled) {
			*p = process{}
			_, err = move.ToDirectory(t.Context(), p.through(source), dir, o)
		}
		if err != nil {
			t.Fatalf("write %d: %v", n, err)
		}
		if diff := cmp.Diff(before, contents(t, source)); diff != "" {
			t.Fatalf("write %d, source:\n%s", n, diff)
		}
		if _, err := os.Stat(filepath.Join(dir, "Machine_ns_a-1.yaml")); err != nil {
			t.Fatal(err)
		}
		p = &process{killAt: n}
		_, err = move.FromDirectory(t.Context(), p.through(target), dir, move.RestoreOptions{})
		killed := errors.Is(err, errKilled)
		if killed {
			*p = process{}
			_, err = move.FromDirectory(t.Context(), p.through(target), dir, move.RestoreOptions{})
		}
		if err != nil {
			t.Fatalf("write %d: %v", n, err)
		}
		if diff := cmp.Diff(lines(clusterA, classOfA), contents(t, target)); diff != "" {
			t.Fatalf("write %d, target:\n%s", n, diff)
		}
		if !killed {
			if n < 8 {
				t.Fatalf("only %d writes", n)
			}
			return
		}
	}
}

// MV-12: a user who may write ConfigMaps in the namespace cannot have an interrupted export pause a Cluster of another one.
func TestDirectoryWithForgedJournal(t *testing.T) {
	o := instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})
	theirs := object(core, "Cluster", "theirs", func(o *unstructured.Unstructured) { o.SetNamespace("other") }, initialized)
	source, dir := management(nil, world(theirs)...), filepath.Join(t.TempDir(), "out")
	killed := &process{killAt: 3}
	if _, err := move.ToDirectory(t.Context(), killed.through(source), dir, o); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	rewriteJournal(t, source, func(j map[string]any) {
		plan := j["plan"].(map[string]any)
		plan["Entries"] = append(plan["Entries"].([]any),
			map[string]any{"v": "v1beta2", "i": map[string]any{"Group": "cluster.x-k8s.io", "Kind": "Cluster", "Namespace": "other", "Name": "theirs"}})
	})
	before := contents(t, source)
	writes := &process{}
	_, err := move.ToDirectory(t.Context(), writes.through(source), dir, o)
	if f := fault.As(err); f == nil || f.Reason != "UnreadableJournal" || writes.writes != 0 {
		t.Errorf("%v, %d writes", err, writes.writes)
	}
	if diff := cmp.Diff(before, contents(t, source)); diff != "" {
		t.Error(diff)
	}
}

// MV-12: what exists is kept as it is, and one that a person has paused is not resumed.
func TestRestoreKeeps(t *testing.T) {
	source := management(nil, world()...)
	objects, err := move.Snapshot(t.Context(), source, graph.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	target := management(nil, object(core, "Cluster", "a", set(true, "spec", "paused")))
	p := &process{}
	got, err := move.Restore(t.Context(), p.through(target), objects, move.RestoreOptions{KeepPaused: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(move.DirectoryResult{Created: 7, Unchanged: 1}, got); diff != "" {
		t.Error(diff)
	}
	if got := contents(t, target); got[0] != "Cluster ns/a paused" {
		t.Error(got[0])
	}
}

// MV-12: files that are none are named, and nothing is created.
func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"kind: [": "f.yaml is not an object", "kind: Cluster": "f.yaml is not an object",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: ns}": "Pod ns/x: the management cluster does not have",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := &process{}
		_, err := move.FromDirectory(t.Context(), p.through(management(nil)), dir, move.RestoreOptions{})
		if err == nil || !strings.Contains(err.Error(), want) || p.writes > 0 {
			t.Errorf("%q: %v, %d writes", text, err, p.writes)
		}
	}
}
