package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// A namespace has one job at a time, so that the others get theirs; all of them have a few.
func TestNamespacesShare(t *testing.T) {
	j := NewRunner(t.Context(), time.Now, SnapshotLimits())
	release := make(chan struct{})
	defer close(release)
	key := func(namespace, name string) string {
		return Key("Kind", client.ObjectKey{Namespace: namespace, Name: name})
	}
	start := func(namespace, name string) bool {
		return j.Start(key(namespace, name), "", func(context.Context) error { <-release; return nil })
	}
	if !start("a", "one") || start("a", "two") {
		t.Error("a namespace has two jobs, or none")
	}
	for _, namespace := range []string{"b", "c", "d"} {
		if j.State(key(namespace, "one")).Busy || !start(namespace, "one") {
			t.Errorf("namespace %s waits for the job of another", namespace)
		}
	}
	if !j.State(key("a", "two")).Busy || !j.State(key("e", "one")).Busy || start("e", "one") {
		t.Error("there is no bound")
	}
}

// TestJobsForNamespace checks that jobs count for the namespace that they are started for: the objects of several users may be in
// one namespace.
func TestJobsForNamespace(t *testing.T) {
	j := NewRunner(t.Context(), time.Now, Limits{Total: 4, Namespace: 2})
	release := make(chan struct{})
	defer close(release)
	start := func(namespace, name string) bool {
		return j.StartFor(namespace, Key("Kind", client.ObjectKey{Namespace: "shared", Name: name}), "", func(context.Context) error { <-release; return nil })
	}
	if !start("a", "1") || !start("a", "2") || start("a", "3") {
		t.Error("namespace a does not have two jobs")
	}
	key := Key("Kind", client.ObjectKey{Namespace: "shared", Name: "4"})
	if !j.StateFor("a", key).Busy || j.StateFor("b", key).Busy || !start("b", "4") {
		t.Error("namespace b waits for namespace a")
	}
}

// One job of a namespace runs at a time; how it ended is remembered until the next of its key, and subscribers are notified.
func TestJobs(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	j := NewRunner(t.Context(), func() time.Time { return now }, SnapshotLimits())
	ended := make(chan string, 10)
	cancel := j.Subscribe(func(key string) { ended <- key })
	release := make(chan struct{})
	failed := errors.New("no luck")
	if !j.Start("a", "first", func(context.Context) error { <-release; return failed }) {
		t.Fatal("nothing runs, and it does not start")
	}
	if j.Start("b", "second", func(context.Context) error { t.Error("two at once"); return nil }) {
		t.Error("a second one starts")
	}
	if a, b := j.State("a"), j.State("b"); !a.Running || a.Busy || a.What != "first" || b.Running || !b.Busy {
		t.Errorf("while it runs: %+v, %+v", a, b)
	}
	close(release)
	if key := <-ended; key != "a" {
		t.Errorf("notified of %q", key)
	}
	if a := j.State("a"); a.Running || !errors.Is(a.Err, failed) || !a.Ended.Equal(now) || a.What != "first" {
		t.Errorf("ended: %+v", a)
	}
	if !j.Start("a", "again", func(context.Context) error { panic("no luck") }) {
		t.Fatal("it does not start again")
	}
	<-ended
	if a := j.State("a"); fault.KindOf(a.Err) != fault.Bug {
		t.Errorf("a panic: %+v", a)
	}
	j.Forget("a")
	if a := j.State("a"); a != (State{}) {
		t.Errorf("forgotten: %+v", a)
	}
	cancel()
	done := make(chan struct{})
	j.Start("c", "", func(context.Context) error { close(done); return nil })
	<-done
}

// Jobs end with their context, and none starts after it.
func TestJobsEndWithTheContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	j := NewRunner(ctx, time.Now, SnapshotLimits())
	ended := make(chan string, 1)
	j.Subscribe(func(key string) { ended <- key })
	j.Start("a", "", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	stop()
	<-ended
	if !errors.Is(j.State("a").Err, context.Canceled) || j.Start("b", "", func(context.Context) error { return nil }) {
		t.Error("it continues")
	}
}

// A job that is canceled ends with its context, and others go on.
func TestCancel(t *testing.T) {
	j := NewRunner(t.Context(), time.Now, Limits{Total: 2, Namespace: 2})
	ended := make(chan string, 2)
	j.Subscribe(func(key string) { ended <- key })
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	if !j.Start("a", "", wait) || !j.Start("b", "", wait) {
		t.Fatal("they do not start")
	}
	j.Cancel("a")
	j.Cancel("none")
	if key := <-ended; key != "a" || !errors.Is(j.State("a").Err, context.Canceled) || !j.State("b").Running {
		t.Errorf("ended %s: %+v, %+v", key, j.State("a"), j.State("b"))
	}
}

// TestKeyHasOneJob checks that a second job with the key of a running one does not start, whatever the limits are.
func TestKeyHasOneJob(t *testing.T) {
	j := NewRunner(t.Context(), time.Now, Limits{Total: 4, Namespace: 4})
	release, ended := make(chan struct{}), make(chan string, 2)
	defer j.Subscribe(func(key string) { ended <- key })()
	if !j.Start("a", "first", func(context.Context) error { <-release; return nil }) {
		t.Fatal("nothing runs, and the job does not start")
	}
	if j.Start("a", "second", func(context.Context) error { return nil }) {
		t.Error("a second job runs with the same key")
	}
	close(release)
	<-ended
}
