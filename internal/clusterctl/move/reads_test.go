package move_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
)

// aroundMark is called before and after an object is marked for deletion.
type aroundMark func(ctx context.Context, c client.Client, o client.Object, marked bool) error

// countLists counts the requests that list Machines and MachineSets.
func countLists(c client.WithWatch, lists *atomic.Int64, around aroundMark) client.WithWatch {
	return interceptor.NewClient((&process{}).through(c), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if strings.HasPrefix(l.GetObjectKind().GroupVersionKind().Kind, "Machine") && strings.HasPrefix(l.GetObjectKind().GroupVersionKind().Group, "cluster.") {
				lists.Add(1)
			}
			return c.List(ctx, l, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if data, err := patch.Data(o); err != nil || !strings.Contains(string(data), graph.DeleteForMove) {
				return c.Patch(ctx, o, patch, opts...)
			}
			if err := around(ctx, c, o, false); err != nil {
				return err
			}
			if err := c.Patch(ctx, o, patch, opts...); err != nil {
				return err
			}
			return around(ctx, c, o, true)
		},
	})
}

// A move lists each kind of the source at most twice for each of two kinds (Machine, MachineSet): for the plan, and after
// the pause. An object whose status changes between the second time and its deletion is read alone; one whose content changes is
// copied and compared again, with a list for each.
func TestSourceIsListedTwice(t *testing.T) {
	nothing := func(context.Context, client.Client, client.Object, bool) error { return nil }
	changeOnce := func(after bool, change func(*unstructured.Unstructured)) aroundMark {
		var done atomic.Bool
		return func(ctx context.Context, c client.Client, o client.Object, marked bool) error {
			if marked != after || o.GetName() != "a-1" || o.GetObjectKind().GroupVersionKind().Kind != "Machine" || done.Swap(true) {
				return nil
			}
			live := object(core, "Machine", "a-1")
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
				return err
			}
			change(live)
			return c.Update(ctx, live)
		}
	}
	for name, tc := range map[string]struct {
		around aroundMark
		lists  int64 // of two kinds
		label  string
	}{
		"nothing changes": {nothing, 4, ""},
		"a status changes": {changeOnce(false, func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(o.Object, "Paused", "status", "phase"); err != nil {
				t.Fatal(err)
			}
		}), 4, ""},
		"a label is added after the mark": {changeOnce(true, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"late": "yes"}) }), 6, "yes"},
		"a label is added":                {changeOnce(false, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"late": "yes"}) }), 6, "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := management(nil, world()...), management(nil)
			var lists atomic.Int64
			_, err := move.New(countLists(source, &lists, tc.around), (&process{}).through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := lists.Load(); n != tc.lists {
				t.Errorf("Machines and MachineSets of the source were listed %d times, want %d", n, tc.lists)
			}
			if diff := cmp.Diff([]string{"ConfigMap ns/other"}, contents(t, source)); diff != "" {
				t.Error("source:", diff)
			}
			if diff := cmp.Diff(lines(clusterA, classOfA), contents(t, target)); diff != "" {
				t.Error("target:", diff)
			}
			moved := object(core, "Machine", "a-1")
			if err := target.Get(t.Context(), client.ObjectKeyFromObject(moved), moved); err != nil || moved.GetLabels()["late"] != tc.label {
				t.Errorf("label of the Machine at the target: %q, %v", moved.GetLabels()["late"], err)
			}
		})
	}
}

func TestExportListsTwice(t *testing.T) {
	var lists atomic.Int64
	source := countLists(management(nil, world()...), &lists, func(context.Context, client.Client, client.Object, bool) error { return nil })
	if _, err := move.ToDirectory(t.Context(), source, filepath.Join(t.TempDir(), "out"), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})); err != nil {
		t.Fatal(err)
	}
	if n := lists.Load(); n != 4 {
		t.Errorf("Machines and MachineSets were listed %d times, want 4", n)
	}
}
