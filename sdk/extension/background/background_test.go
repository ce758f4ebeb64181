package background_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/background"
	"github.com/slipwayhq/slipway/sdk/extension/extensiontest"
)

// call calls the hook once.
func call(t *testing.T, r *background.Runner, job background.Job) *hooksv1.BeforeClusterDeleteResponse {
	t.Helper()
	x, err := extension.New(extension.OnErr("backup", hooksv1.BeforeClusterDelete,
		func(ctx context.Context, _ *hooksv1.BeforeClusterDeleteRequest, out *hooksv1.BeforeClusterDeleteResponse) error {
			return r.Hold(ctx, out, job)
		}))
	if err != nil {
		t.Fatal(err)
	}
	return extensiontest.Call[hooksv1.BeforeClusterDeleteResponse](t, x, "backup", &hooksv1.BeforeClusterDeleteRequest{})
}

// until calls until the caller is not held back any more.
func until(t *testing.T, r *background.Runner, job background.Job) *hooksv1.BeforeClusterDeleteResponse {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		out := call(t, r, job)
		if out.RetryAfterSeconds == 0 {
			return out
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is still held back: %+v", out)
		}
	}
}

// RT-23: work outlives the call that started it, runs once however often it is called for, and is remembered for a while.
func TestHold(t *testing.T) {
	now := time.Now()
	r := background.New(background.Config{Keep: time.Minute, Now: func() time.Time { return now }})
	release, runs := make(chan struct{}), atomic.Int32{}
	job := background.Job{Key: "a", Message: "copying", Again: 7 * time.Second, Work: func(ctx context.Context) error {
		runs.Add(1)
		<-release
		return ctx.Err() // the call has ended long ago
	}}
	for range 3 {
		if out := call(t, r, job); out.RetryAfterSeconds != 7 || out.Message != "copying" || out.Status != hooksv1.ResponseStatusSuccess {
			t.Errorf("while it runs: %+v", out)
		}
	}
	close(release)
	if out := until(t, r, job); out.Status != hooksv1.ResponseStatusSuccess {
		t.Errorf("when it is done: %+v", out)
	}
	now = now.Add(time.Minute)
	if out := call(t, r, job); out.RetryAfterSeconds != 0 || runs.Load() != 1 {
		t.Errorf("it is remembered: %+v after %d runs", out, runs.Load())
	}
	now = now.Add(time.Second)
	if call(t, r, job); runs.Load() > 2 {
		t.Errorf("%d runs", runs.Load())
	}
	until(t, r, job)
	if runs.Load() != 2 {
		t.Errorf("after that it runs again: %d runs", runs.Load())
	}
}

// RT-23: an error is that of one call, then the work is started again; a panic is an error that says nothing of what it held.
func TestHoldFails(t *testing.T) {
	for name, tc := range map[string]struct {
		work func() error
		want string
	}{
		"error": {func() error { return errors.New("no space left") }, "no space left"},
		"panic": {func() error { panic("token=123") }, `the work of "a" panicked`},
	} {
		t.Run(name, func(t *testing.T) {
			r, runs := background.New(background.Config{}), atomic.Int32{}
			job := background.Job{Key: "a", Work: func(context.Context) error {
				if runs.Add(1) == 1 {
					return tc.work()
				}
				return nil
			}}
			if out := until(t, r, job); out.Status != hooksv1.ResponseStatusFailure || out.Message != tc.want {
				t.Errorf("got %+v", out)
			}
			if out := until(t, r, job); out.Status != hooksv1.ResponseStatusSuccess || runs.Load() != 2 {
				t.Errorf("the second time: %+v after %d runs", out, runs.Load())
			}
		})
	}
}

// RT-23: no more jobs than allowed run at a time; when the program stops, work is told to end, and none is started.
func TestStop(t *testing.T) {
	r := background.New(background.Config{Most: 1})
	began := make(chan string, 2)
	work := func(key string) background.Job {
		return background.Job{Key: key, Work: func(ctx context.Context) error {
			began <- key
			<-ctx.Done()
			return ctx.Err()
		}}
	}
	call(t, r, work("a"))
	<-began
	if out := call(t, r, work("b")); out.RetryAfterSeconds != 10 {
		t.Errorf("it waits for its turn: %+v", out)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	stubborn, release := background.New(background.Config{}), make(chan struct{})
	call(t, stubborn, background.Job{Key: "c", Work: func(context.Context) error {
		began <- "c"
		<-release
		return nil
	}})
	<-began
	if err := stubborn.Stop(ctx); err == nil || !strings.Contains(err.Error(), "did not end") {
		t.Errorf("work that does not end: %v", err)
	}
	close(release)
	for _, r := range []*background.Runner{r, stubborn} {
		if err := r.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if out := call(t, r, work("d")); out.RetryAfterSeconds != 10 {
		t.Errorf("after the end: %+v", out)
	}
	select {
	case key := <-began:
		t.Errorf("%s ran", key)
	default:
	}
}
