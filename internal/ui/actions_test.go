package ui

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/rootcause"
	"github.com/slipwayhq/slipway/test/mirrortest"
)

func TestActionLog(t *testing.T) {
	m, n := rootcause.Ref{Group: "g", Kind: "Machine", Namespace: "team", Name: "m"}, rootcause.Ref{Group: "g", Kind: "Machine", Namespace: "team", Name: "n"}
	plan := func(minutes int, actions []string, errors ...string) []Plan {
		return []Plan{{Controller: "machine", Time: ago(time.Duration(minutes) * time.Minute), Actions: actions, Errors: errors}}
	}
	var l actionLog
	drain, remove := []string{"drain Node m"}, []string{"delete Node m", "remove the finalizer"}
	l.add(m, plan(90, drain))
	for _, minutes := range []int{30, 30, 29, 28} {
		l.add(m, plan(minutes, drain, "a Pod is not evicted"))
	}
	l.add(n, plan(25, drain))
	l.add(m, plan(20, nil))
	l.add(m, plan(10, remove))
	var got []string
	for _, a := range l.after(ago(time.Hour), func(of rootcause.Ref) bool { return of == m }) {
		got = append(got, fmt.Sprintf("%s %s %q %t ×%d", mirrortest.Now().Sub(a.At), a.Controller, a.Text, a.Failed, a.Count))
	}
	want := []string{`28m0s machine "drain Node m\na Pod is not evicted" true ×3`, `10m0s machine "delete Node m\nremove the finalizer" false ×1`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i := range 2 * maxActions {
		l.add(m, []Plan{{Time: mirrortest.Now().Add(time.Duration(i) * time.Second), Actions: []string{fmt.Sprint(i)}}})
	}
	if len(l.actions) != maxActions {
		t.Errorf("%d actions are remembered", len(l.actions))
	}
}

// The timeline of a cluster has the actions of the plans of its objects, also after the controllers had other plans.
func TestActionsOnTimeline(t *testing.T) {
	actions := []string{"start container bad-md-a-1: it ended"}
	s := testServer(t, troubled(t), func(o *SourceOptions) {
		o.Plans = func(_ context.Context, of rootcause.Ref) ([]Plan, bool, error) {
			return []Plan{{Controller: "localmachine", Time: ago(time.Minute), Actions: actions}}, of.Kind == "LocalMachine", nil
		}
	})
	for range 2 {
		body := page(t, s, "/m/prod-script-alert-1-script/cluster/team/bad", 200)
		contains(t, "cluster", body, `<span class="what">action</span> localmachine`, "start container bad-md-a-1: it ended")
		actions = nil
	}
	lacks(t, "another cluster", page(t, s, "/m/prod-script-alert-1-script/cluster/team/good", 200), `<span class="what">action</span>`)
}
