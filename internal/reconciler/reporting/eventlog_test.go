package reporting

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The recorder makes a series of events that regard the same version of an object: those that say the same do.
func TestRepeatedEventsRegardOneVersion(t *testing.T) {
	var n eventVersions
	at := time.Unix(1e9, 0)
	o := func(uid types.UID, version string) *clusterv1.Machine {
		m := &clusterv1.Machine{}
		m.UID, m.ResourceVersion = uid, version
		return m
	}
	for i, step := range []struct {
		reason       string
		after        time.Duration
		uid, version string
		text, want   string
	}{
		{"the first", 0, "a", "1", "quota", "1"},
		{"the status was written meanwhile", time.Minute, "a", "2", "quota", "1"},
		{"another text is another event", 0, "a", "2", "created m1", "2"},
		{"and has a series of its own", time.Minute, "a", "3", "created m1", "2"},
		{"both go on", 0, "a", "4", "quota", "1"},
		{"another object", 0, "b", "9", "quota", "9"},
		{"the recorder has ended the series", 7 * time.Minute, "a", "5", "quota", "5"},
	} {
		at = at.Add(step.after)
		m := o(types.UID(step.uid), step.version)
		regarding, _ := n.regarding(m, step.text, at)
		if got := regarding.GetResourceVersion(); got != step.want || m.ResourceVersion != step.version {
			t.Errorf("step %d, %s: regards version %s, want %s; the object has %s", i, step.reason, got, step.want, m.ResourceVersion)
		}
	}
	for i := range maxNotes + 10 {
		n.regarding(o("c", "1"), fmt.Sprint(i), at)
	}
	if len(n.of) > maxNotes {
		t.Errorf("%d events are remembered", len(n.of))
	}
}

func TestNormalized(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, a, b string
		same         bool
	}{
		"duration":   {"a retry time differs", "hook h failed; it is called again in 28s", "hook h failed; it is called again in 1m30.5s", true},
		"words":      {"written out", "waited 5 seconds", "waited 12 seconds", true},
		"time":       {"a time differs", "since 2026-01-02T03:04:05Z", "since 2026-01-02T03:05:06.25+01:00", true},
		"local port": {"the kernel chooses the port", "read tcp 127.0.0.1:48332->127.0.0.1:21770: reset", "read tcp 127.0.0.1:1024->127.0.0.1:21770: reset", true},
		"attempt":    {"counters differ", "attempt 3 failed", "attempt 12 failed", true},
		"neighbours": {"values side by side differ", "waited 5s 6s 7s (8s) 9s", "waited 1s 2s 3s (4s) 5s", true},
		"UUID":       {"request IDs differ", "request 0f0e0d0c-1111-2222-3333-444455556666", "request aaaaaaaa-1111-2222-3333-444455556666", true},
		"name":       {"another Machine is another event", "Machine m-1 failed", "Machine m-2 failed", false},
		"version":    {"another version as well", "upgrade to v1.36.3", "upgrade to v1.36.4", false},
		"remote":     {"and another server", "dial tcp 127.0.0.1:21770", "dial tcp 127.0.0.1:21771", false},
		"number":     {"and another number of Machines", "2 Machines are unhealthy", "3 Machines are unhealthy", false},
		"generated":  {"a generated name is no duration", "Machine c1-2d5s failed", "Machine c1-3d5s failed", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Normalized(tc.a) == Normalized(tc.b); got != tc.same {
				t.Errorf("%s: %q and %q", tc.reason, Normalized(tc.a), Normalized(tc.b))
			}
		})
	}
}

// recorded collects the events of a recorder.
type recorded []string

func (r *recorded) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	*r = append(*r, regarding.(*clusterv1.Machine).ResourceVersion+" "+kind+" "+reason+" "+fmt.Sprintf(note, args...))
}

// A hook that is down continues its series, and an object with ever new messages has few events.
func TestWarningsAreBounded(t *testing.T) {
	l, got := EventLog{}, &recorded{}
	at := time.Unix(1e9, 0)
	m := &clusterv1.Machine{}
	m.UID = "a"
	for i := range 60 {
		m.ResourceVersion = fmt.Sprint(i)
		at = at.Add(30 * time.Second)
		l.Record(got, m, Warning("HookFailed", "it is called again in %ds", i), at)
	}
	for _, e := range *got {
		if e[:2] != "0 " {
			t.Fatalf("%q begins a series of its own", e)
		}
	}
	if len(*got) != 60 {
		t.Errorf("%d of 60 repetitions are counted", len(*got))
	}
	got = &recorded{}
	for i := range 100 {
		l.Record(got, m, Warning("Other", "object m-%d failed", i), at)
	}
	if n := len(*got); n < warningBurst-2 || n > warningBurst+1 {
		t.Errorf("%d different Warnings at once, want about %d", n, warningBurst)
	}
	for i := range 100 {
		l.Record(got, m, Warning("Other", "object m-%d failed", i), at)
	}
	if n := len(*got); n > 2*(warningBurst+1) {
		t.Errorf("%d Warnings after the same again: dropped events count as recorded", n)
	}
	before := len(*got)
	l.Record(got, m, Normal("Created", "a Normal event has another limit"), at)
	other := m.DeepCopy()
	other.UID = "b"
	l.Record(got, other, Warning("Other", "another object"), at)
	l.Record(got, m, Warning("Other", "an hour later"), at.Add(time.Hour))
	if len(*got) != before+3 {
		t.Errorf("%d events after %d, want 3 more", len(*got), before)
	}
	for i := range maxNotes + 10 {
		l.warnings.allow(types.UID(fmt.Sprint(i)), at)
	}
	if len(l.warnings.of) > maxNotes {
		t.Errorf("%d objects are remembered", len(l.warnings.of))
	}
}
