package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

type free struct{ what string }

func (f free) String() string { return f.what }
func (free) Independent()     {}

// many is an action on several objects.
type many struct{ names []string }

func (m many) String() string { return fmt.Sprint(m.names) }
func (m many) Parts() []reconciler.Action {
	var out []reconciler.Action
	for _, name := range m.names {
		out = append(out, many{[]string{name}})
	}
	return out
}

// TestCompoundAction: every part is carried out, whatever becomes of the others, and the outcome has the whole.
func TestCompoundAction(t *testing.T) {
	for name, tc := range map[string]struct {
		fails, panics string
		kind          fault.Kind
	}{
		"none":  {},
		"one":   {fails: "[b]", kind: fault.Invalid},
		"panic": {panics: "[b]", kind: fault.Bug},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, machine(nil))
			var mu sync.Mutex
			var out reconciler.Outcome
			h.r.Decide = func(snapshot) reconciler.Plan {
				return reconciler.Plan{Actions: []reconciler.Action{many{[]string{"a", "b", "c"}}, act{"last"}}}
			}
			h.r.Act = func(_ context.Context, _ snapshot, a reconciler.Action) error {
				mu.Lock()
				h.acted = append(h.acted, a.String())
				mu.Unlock()
				switch a.String() {
				case tc.fails:
					return fault.New(fault.Invalid, "X", "change it")
				case tc.panics:
					panic("no")
				}
				return nil
			}
			h.r.Report = func(_ snapshot, _ reconciler.Plan, o reconciler.Outcome) reconciler.Report {
				out = o
				return reconciler.Report{}
			}
			_, _ = h.reconcile(t)
			slices.Sort(h.acted[:3])
			want := []string{"[a]", "[b]", "[c]"}
			failed := tc.fails+tc.panics != ""
			if !failed {
				want = append(want, "last")
			}
			if diff := cmp.Diff(want, h.acted); diff != "" {
				t.Errorf("acted (-want +got):\n%s", diff)
			}
			if failed && (out.Failed.String() != "[a b c]" || fault.KindOf(out.Err) != tc.kind) || failed != (out.Err != nil) {
				t.Errorf("failed %v with %v", out.Failed, out.Err)
			}
		})
	}
}

func TestIndependentActions(t *testing.T) {
	plan := []reconciler.Action{act{"first"}, free{"a"}, free{"b"}, free{"c"}, act{"last"}}
	tests := map[string]struct {
		reason string
		fails  string
		acted  []string // the independent ones sorted
		done   []string
		failed string
	}{
		"none":        {"in order, neighbours together", "", []string{"first", "a", "b", "c", "last"}, []string{"first", "a", "b", "c", "last"}, ""},
		"a neighbour": {"the others are tried, what follows is not", "b", []string{"first", "a", "b", "c"}, []string{"first", "a", "c"}, "b"},
		"a panic":     {"is an error like others", "panic c", []string{"first", "a", "b", "c"}, []string{"first", "a", "b"}, "c"},
		"the first":   {"nothing follows", "first", []string{"first"}, nil, "first"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, machine(nil))
			var mu sync.Mutex
			var out reconciler.Outcome
			h.r.Decide = func(snapshot) reconciler.Plan { return reconciler.Plan{Actions: plan} }
			h.r.Act = func(_ context.Context, _ snapshot, a reconciler.Action) error {
				mu.Lock()
				h.acted = append(h.acted, a.String())
				mu.Unlock()
				switch tc.fails {
				case a.String():
					return errors.New("no")
				case "panic " + a.String():
					panic("no")
				}
				return nil
			}
			h.r.Report = func(_ snapshot, _ reconciler.Plan, o reconciler.Outcome) reconciler.Report {
				out = o
				return reconciler.Report{}
			}
			_, err := h.reconcile(t)
			if n := min(len(h.acted), 4); n > 1 {
				slices.Sort(h.acted[1:n])
			}
			if diff := cmp.Diff(tc.acted, h.acted); diff != "" {
				t.Errorf("%s: acted (-want +got):\n%s", tc.reason, diff)
			}
			var done []string
			for _, a := range out.Done {
				done = append(done, a.String())
			}
			if diff := cmp.Diff(tc.done, done); diff != "" {
				t.Errorf("%s: done (-want +got):\n%s", tc.reason, diff)
			}
			if (err != nil) != (tc.failed != "") || tc.failed != "" && out.Failed.String() != tc.failed {
				t.Errorf("%s: failed %v with %v, want %q", tc.reason, out.Failed, err, tc.failed)
			}
			if name == "a panic" && fault.KindOf(err) != fault.Bug {
				t.Errorf("want a bug, got %v", err)
			}
		})
	}
}

// As many as may be are carried out at the same time, not more: each waits until ten have begun.
func TestIndependentActionsAtOnce(t *testing.T) {
	h := newHarness(t, machine(nil))
	var actions []reconciler.Action
	for i := range 20 {
		actions = append(actions, free{fmt.Sprint(i)})
	}
	var mu sync.Mutex
	running, most := 0, 0
	begun := make(chan struct{}, len(actions))
	full := make(chan struct{})
	h.r.Decide = func(snapshot) reconciler.Plan { return reconciler.Plan{Actions: actions} }
	h.r.Act = func(context.Context, snapshot, reconciler.Action) error {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		begun <- struct{}{}
		if len(begun) == 10 {
			close(full)
		}
		<-full
		mu.Lock()
		running--
		mu.Unlock()
		return nil
	}
	if _, err := h.reconcile(t); err != nil || most != 10 {
		t.Errorf("want ten at once, got %d, %v", most, err)
	}
}
