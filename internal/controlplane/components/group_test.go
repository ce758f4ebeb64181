package components

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGroup(t *testing.T) {
	broken := errors.New("disk full")
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tests := map[string]struct {
		reason string
		run    func(*Group)
		want   error
	}{
		"stopped":          {"asked for: no error", func(g *Group) { g.Run("a", wait); g.cancel(errStopped) }, nil},
		"one part fails":   {"all end, with its error", func(g *Group) { g.Run("a", wait); g.Run("b", func(context.Context) error { return broken }) }, broken},
		"one part returns": {"a part that ends is a failure", func(g *Group) { g.Run("a", func(context.Context) error { return nil }) }, errAny},
		"a watched error": {"as of a part", func(g *Group) {
			errs := make(chan error, 1)
			errs <- broken
			g.Watch("etcd", errs)
		}, broken},
		"a part that ends by a context of its own": {"it did not end because of a request", func(g *Group) {
			g.Run("kube-apiserver", func(context.Context) error { return fmt.Errorf("%w: %w", broken, context.Canceled) })
		}, broken},
		"a start that fails": {"the start's error is why", func(g *Group) { g.Run("a", wait); _ = g.Abort(broken) }, broken},
		"a start that fails with a part": {"the part's error is why, and not what follows from it", func(g *Group) {
			g.Run("a", func(context.Context) error { return broken })
			<-g.Context().Done()
			_ = g.Abort(g.Context().Err())
		}, broken},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewGroup(t.Context())
			var stopped []int
			g.OnStop(func() { stopped = append(stopped, 1) })
			g.OnStop(func() { stopped = append(stopped, 2) })
			test.run(g)
			<-g.Done()
			err := g.Stop()
			if (test.want == nil) != (err == nil) || (test.want != nil && test.want != errAny && !errors.Is(err, test.want)) {
				t.Errorf("got %v, want %v: %s", err, test.want, test.reason)
			}
			g.OnStop(func() { stopped = append(stopped, 3) })
			if diff := cmp.Diff([]int{2, 1, 3}, stopped); diff != "" {
				t.Errorf("stopped in this order: %s", diff)
			}
		})
	}
}

// A group within a part of another group loses no reason, however the inner start fails.
func TestGroupInGroup(t *testing.T) {
	broken := errors.New("unknown api groups nosuch.example.com")
	outer := NewGroup(t.Context())
	outer.Serve("Kubernetes v1", func(ctx context.Context) error {
		inner := NewGroup(ctx)
		inner.Serve("kube-apiserver", func(context.Context) error { return broken })
		<-inner.Context().Done()
		return inner.Abort(inner.Context().Err())
	})
	<-outer.Done()
	if err := outer.Cause(); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reason of the part of the inner group", err)
	}
}

// The end of the context that a group runs in is a requested stop, whatever its cause.
func TestGroupOfASignal(t *testing.T) {
	for name, cause := range map[string]error{"canceled": nil, "signal": fmt.Errorf("terminated signal received: %w", context.Canceled)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		g := NewGroup(ctx)
		g.Run("a", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		cancel(cause)
		<-g.Done()
		if err := g.Cause(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := g.Abort(ctx.Err()); err != nil {
			t.Errorf("%s, during the start: %v", name, err)
		}
	}
}

var errAny = io.EOF // stands for any error

// Parts that use the server end before it does, however slowly, and a group
// that ends starts nothing more.
func TestGroupStopsItsServerLast(t *testing.T) {
	g := NewGroup(t.Context())
	order := make(chan string, 3)
	release := make(chan struct{})
	g.Serve("server", func(ctx context.Context) error { <-ctx.Done(); order <- "server"; return ctx.Err() })
	g.Run("slow", func(ctx context.Context) error {
		<-ctx.Done()
		close(release)
		order <- "slow"
		return ctx.Err()
	})
	g.Run("later", func(ctx context.Context) error {
		<-release
		if g.serving.Err() != nil {
			t.Error("the server was told to end while a part still ran")
		}
		return ctx.Err()
	})
	if err := g.Stop(); err != nil {
		t.Error(err)
	}
	g.Run("too late", func(context.Context) error { order <- "too late"; return nil })
	close(order)
	var got []string
	for s := range order {
		got = append(got, s)
	}
	if diff := cmp.Diff([]string{"slow", "server"}, got); diff != "" {
		t.Errorf("ended in this order: %s", diff)
	}
}
