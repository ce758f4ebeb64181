package fault

import (
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// Group runs functions in goroutines and returns the first error, like errgroup.Group. A panic of a function is
// returned as a fault, because controller-runtime recovers panics only on the goroutine of a reconciliation: anywhere
// else, data from a workload cluster or an extension could end the manager. The zero value is ready to use, by one
// goroutine; an error of one function then does not stop the others.
type Group struct{ group *errgroup.Group }

// NewGroup returns a Group, and a context that is canceled when a function fails or Wait returns.
func NewGroup(ctx context.Context) (*Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	return &Group{group}, ctx
}

func (g *Group) init() *errgroup.Group {
	if g.group == nil {
		g.group = &errgroup.Group{}
	}
	return g.group
}

// SetLimit limits the number of functions that run at the same time.
func (g *Group) SetLimit(n int) { g.init().SetLimit(n) }

// Go runs a function in a goroutine, as soon as the limit permits it.
func (g *Group) Go(f func() error) { g.init().Go(func() error { return Recover(f) }) }

// Wait waits until all functions have returned.
func (g *Group) Wait() error { return g.init().Wait() }

// Recover runs a function, and returns a panic as a fault whose details contain the stack. [Group] and package jobs
// call it for functions that they run in a goroutine, and the reader of etcd statuses (kubeadm/controlplane/workload)
// for each member.
func Recover(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			bug := New(Bug, "Panic", "the program panicked: %s", fmt.Sprint(p))
			bug.Details = []any{"stack", string(debug.Stack())}
			err = bug
		}
	}()
	return f()
}
