package group

import (
	"context"
	"errors"
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
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := New(t.Context())
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

var errAny = io.EOF // stands for any error

// Parts that use the server end before it does, however slowly, and a group
// that ends starts nothing more.
func TestGroupStopsItsServerLast(t *testing.T) {
	g := New(t.Context())
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
