package ui

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/test/mirrortest"
)

func ago(d time.Duration) time.Time { return mirrortest.Now().Add(-d) }

func TestRollout(t *testing.T) {
	r := newRollout([]life{
		{name: "w-new", version: "v1.36.0", created: ago(30 * time.Minute), ready: ago(15 * time.Minute), upToDate: true},
		{name: "w-old", version: "v1.35.1", created: ago(90 * time.Minute), ready: ago(80 * time.Minute)},
		{name: "w-going", version: "v1.35.1", created: ago(90 * time.Minute), ready: ago(80 * time.Minute), deleting: ago(6 * time.Minute)},
		{name: "w-gone", version: "v1.35.1", created: ago(90 * time.Minute), ready: ago(80 * time.Minute), deleting: ago(30 * time.Minute), removed: ago(24 * time.Minute)},
		{name: "w-next", version: "v1.36.0", created: ago(6 * time.Minute), upToDate: true},
		{name: "cp", version: "v1.36.0", controlPlane: true, created: ago(time.Minute), upToDate: true},
		{name: "w-never", version: "v1.36.0", created: ago(12 * time.Minute), deleting: ago(6 * time.Minute), upToDate: true},
	}, mirrortest.Now())
	if diff := cmp.Diff([]versionCount{{Version: "v1.36.0", Creating: 2, Running: 1, Deleting: 1}, {Version: "v1.35.1", Running: 1, Deleting: 1, Deleted: 1, OutOfDate: 2}}, r.Counts); diff != "" {
		t.Error(diff)
	}
	got := map[string]string{}
	for _, l := range r.Lanes {
		for _, s := range l.Spans {
			got[l.Name] += fmt.Sprintf("%s %d+%d; ", s.Class, s.X, s.Width)
		}
	}
	want := map[string]string{
		"w-new":   "new creating 500+250; new running 750+250; ",
		"w-old":   "old running 0+1000; ",
		"w-going": "old running 0+900; old deleting 900+100; ",
		"w-gone":  "old running 0+500; old deleting 500+100; ",
		"w-next":  "new creating 900+100; ",
		"cp":      "new creating 983+17; ",
		"w-never": "new creating 800+100; new deleting 900+100; ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r.Lanes[0].Name != "cp" || !r.Active || len(r.Ticks) != 7 {
		t.Errorf("the first lane is %s, active %v, %d ticks", r.Lanes[0].Name, r.Active, len(r.Ticks))
	}
}

func TestRolloutOfManyMachines(t *testing.T) {
	lives := []life{{name: "z-new", version: "v1.36.0", created: ago(time.Minute), upToDate: true}}
	for i := range 100 {
		lives = append(lives, life{name: fmt.Sprintf("a-%03d", i), version: "v1.36.0", created: ago(100 * time.Hour), ready: ago(99 * time.Hour), upToDate: true})
	}
	r := newRollout(lives, mirrortest.Now())
	if len(r.Lanes) != maxLanes || r.Cut.Text("Machine") != "40 of 101 Machines are shown." || r.Lanes[0].Name != "z-new" {
		t.Errorf("%d lanes, %q, the first is %s", len(r.Lanes), r.Cut.Text("Machine"), r.Lanes[0].Name)
	}
	if r := newRollout(nil, mirrortest.Now()); r.Active || len(r.Lanes) > 0 {
		t.Errorf("without Machines: %+v", r)
	}
}

func TestTimeline(t *testing.T) {
	objects := mirrortest.Objects(mirrortest.Broken("team", "a", "it ended"))
	events := []event{
		{At: ago(time.Minute), Type: "Warning", Reason: "Failed", Note: "it failed", Count: 3},
		{At: ago(2 * time.Hour), Type: "Normal", Reason: "Old"},
		{At: ago(2 * time.Second), Type: "Normal", Reason: "Created", Action: "Reconcile"},
		{At: ago(time.Second), Type: "Normal", Reason: "Seen"},
	}
	got := newTimeline(happened{objects: objects, events: events}, mirrortest.Now())
	var titles []string
	for _, e := range got.Entries {
		titles = append(titles, fmt.Sprintf("%s %s %v", e.What, e.Title, e.Warning))
	}
	if len(titles) < 5 || !slices.Equal(titles[:3], []string{"event Seen false", "action Created false", "event Failed true"}) {
		t.Errorf("the entries are %v", titles)
	}
	for _, e := range got.Entries {
		if e.Title == "Old" {
			t.Error("an old Event is shown")
		}
	}
	if len(got.Bars) != 3 || got.Bars[1].X != 580 || got.Bars[1].Warning == 0 {
		t.Errorf("the bars are %+v", got.Bars)
	}
}

// Conditions of one object that change together are one entry, unless their messages differ.
func TestTimelineMergesConditions(t *testing.T) {
	machine := mirrortest.Objects(mirrortest.Broken("team", "a", "it ended"))[1]
	var got []string
	for _, e := range newTimeline(happened{objects: []*unstructured.Unstructured{machine}}, mirrortest.Now()).Entries {
		got = append(got, fmt.Sprintf("%s %s %q %v", e.Of.Kind, e.Title, e.Message, e.Warning))
	}
	want := []string{
		`Machine Available=False "Available" true`, `Machine Ready=False "Ready" true`, `Machine InfrastructureReady=False "it ended" true`,
		`Machine BootstrapConfigReady=True, NodeHealthy=True, NodeReady=True, UpToDate=True "" false`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReplicaView(t *testing.T) {
	for name, tc := range map[string]struct {
		ready, upToDate, desired, current int32
		want                              string
	}{
		"complete":    {3, 3, 3, 3, "3/3 48 0 0 true"},
		"half stale":  {2, 1, 2, 2, "2/2 24 24 0 false"},
		"surge":       {3, 1, 3, 4, "3/3 12 24 1 false"},
		"none":        {0, 0, 3, 1, "0/3 0 0 0 false"},
		"to zero":     {1, 1, 0, 1, "1/0 48 0 1 false"},
		"scaled to 0": {0, 0, 0, 0, "0/0 0 0 0 true"},
	} {
		v := newReplicaView(newReplicas(tc.ready, tc.upToDate, tc.desired, tc.current))
		if got := fmt.Sprintf("%s %d %d %d %v", v.Text, v.Ready, v.Stale, v.Extra, v.Complete); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
