package conversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type object = map[string]any

// CV-01: the three-way merge behind the annotation.
func TestMerge(t *testing.T) {
	tests := map[string]struct {
		reason                             string
		original, unchanged, changed, want any
	}{
		"unchanged": {
			"what the user left alone keeps what only the hub knows",
			object{"a": 1, "hidden": 2}, object{"a": 1}, object{"a": 1}, object{"a": 1, "hidden": 2},
		},
		"added and removed": {
			"keys come and go",
			object{"a": 1, "hidden": 2}, object{"a": 1}, object{"b": 3}, object{"b": 3, "hidden": 2},
		},
		"named items": {
			"items are paired by name: order is the user's, a new item is new, a gone one is gone",
			[]any{object{"name": "x", "h": 1}, object{"name": "y", "h": 2}},
			[]any{object{"name": "x"}, object{"name": "y"}},
			[]any{object{"name": "z"}, object{"name": "y", "n": 1}},
			[]any{object{"name": "z"}, object{"name": "y", "h": 2, "n": 1}},
		},
		"unnamed items": {
			"items without a name are paired by place when no item was added or removed",
			[]any{object{"v": 1, "h": 1}, object{"v": 2, "h": 2}},
			[]any{object{"v": 1}, object{"v": 2}},
			[]any{object{"v": 1}, object{"v": 3}},
			[]any{object{"v": 1, "h": 1}, object{"v": 3, "h": 2}},
		},
		"unnamed items, other number": {
			"else the user's list stands",
			[]any{object{"v": 1, "h": 1}}, []any{object{"v": 1}}, []any{object{"v": 1}, object{"v": 2}},
			[]any{object{"v": 1}, object{"v": 2}},
		},
		"same name twice": {
			"a name that does not identify is not used",
			[]any{object{"name": "x", "h": 1}, object{"name": "x", "h": 2}},
			[]any{object{"name": "x"}, object{"name": "x"}},
			[]any{object{"name": "x"}, object{"name": "x", "n": 1}},
			[]any{object{"name": "x", "h": 1}, object{"name": "x", "h": 2, "n": 1}},
		},
		"other type": {
			"a value of another type replaces",
			object{"a": object{"h": 1}}, object{"a": object{}}, object{"a": "text"}, object{"a": "text"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, merge(tt.original, tt.unchanged, tt.changed)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}
