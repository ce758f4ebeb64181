package testkit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// ErrInjected is the error of the failed write.
var ErrInjected = errors.New("injected failure")

// maxWrites limits the runs of a scenario; a scenario with more writes does not settle.
const maxWrites = 200

// FailEachWrite calls scenario once for each of its writes, with a new client from build: in run n the n-th write
// fails. Reads never fail, no write fails twice, and the last run has no failure. Tests of all controllers with several
// writes use it to check that a reconciliation can be repeated after any failure.
func FailEachWrite(t *testing.T, build func() *fake.ClientBuilder, scenario func(t *testing.T, c client.WithWatch)) {
	t.Helper()
	for n := 1; ; n++ {
		if n > maxWrites {
			t.Fatalf("still writing after %d writes: the scenario does not settle", maxWrites)
		}
		f := &writeFailure{at: n}
		c := build().WithReturnManagedFields().WithInterceptorFuncs(f.funcs()).Build()
		t.Run(fmt.Sprintf("write %d fails", n), func(t *testing.T) { scenario(t, c) })
		if !f.hasHappened() || t.Failed() {
			return
		}
	}
}

// writeFailure fails the n-th write. The code under test may write from several goroutines.
type writeFailure struct {
	at int

	mu       sync.Mutex
	seen     int
	happened bool
}

func (f *writeFailure) hasHappened() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.happened
}

func (f *writeFailure) next() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen++
	if f.seen == f.at {
		f.happened = true
		return ErrInjected
	}
	return nil
}

func (f *writeFailure) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return failOr(f.next(), func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return failOr(f.next(), func() error { return c.Delete(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return failOr(f.next(), func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return failOr(f.next(), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return failOr(f.next(), func() error { return c.Apply(ctx, o, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return failOr(f.next(), func() error { return c.SubResource(sub).Apply(ctx, o, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, sent client.Object, opts ...client.SubResourceCreateOption) error {
			return failOr(f.next(), func() error { return c.SubResource(sub).Create(ctx, o, sent, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return failOr(f.next(), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	}
}

func failOr(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}
