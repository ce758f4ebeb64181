package inventory

import (
	"cmp"
	"context"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// NamespaceOf returns the namespace whose users can make a host slow: the namespace that uses the host or used it last,
// or else the namespace of the SSHHost. Limits for namespaces count the host there, because the SSHHosts of all users
// may be in one namespace.
func NamespaceOf(h *infrav1.SSHHost) string {
	if c := h.Status.Claim; c != nil {
		return c.Namespace
	}
	return cmp.Or(LastNamespace(h), h.Namespace)
}

const (
	// slowAfter is the duration from which on a reconciliation is slow.
	slowAfter = time.Second
	// slowFor is the time for which a namespace is slow after a slow reconciliation.
	slowFor = time.Minute
	// turnDelay is the delay of a reconciliation whose namespace occupies too many workers.
	turnDelay = time.Second
)

// Fair is a reconciler that prevents slow hosts of one namespace from delaying the hosts of others: while
// reconciliations of a namespace take more than a second, and for a minute afterwards, the namespace occupies at most
// half of the workers of a controller. Further reconciliations of the namespace are delayed until one has ended. A
// controller with one worker has no limit. The SSHHost, SSHMachine and SSHCluster controllers use it, because a worker
// that waits for a host can do nothing else.
type Fair struct {
	// Next reconciles.
	Next reconcile.Reconciler
	// Workers is the number of workers of the controller.
	Workers int
	// Namespace returns the namespace for which a request counts. Nil: the one of the object.
	Namespace func(context.Context, reconcile.Request) string
	// Now is the clock.
	Now func() time.Time

	mu      sync.Mutex
	running map[string]*runningRequests
}

// runningRequests are the reconciliations of a namespace.
type runningRequests struct {
	// began has the time at which each began.
	began map[reconcile.Request]time.Time
	// slowUntil is the time until which the namespace is slow, because a reconciliation was.
	slowUntil time.Time
}

// isSlow reports whether a reconciliation is or was slow.
func (r *runningRequests) isSlow(now time.Time) bool {
	for _, began := range r.began {
		if now.Sub(began) >= slowAfter {
			return true
		}
	}
	return now.Before(r.slowUntil)
}

// Reconcile implements [reconcile.Reconciler].
func (f *Fair) Reconcile(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	namespace := req.Namespace
	if f.Namespace != nil {
		namespace = f.Namespace(ctx, req)
	}
	if !f.begin(namespace, req) {
		return ctrl.Result{RequeueAfter: turnDelay}, nil
	}
	defer f.end(namespace, req)
	return f.Next.Reconcile(ctx, req)
}

func (f *Fair) begin(namespace string, req reconcile.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, own := f.Now(), f.running[namespace]
	switch {
	case own == nil:
		if f.running == nil {
			f.running = map[string]*runningRequests{}
		}
		own = &runningRequests{began: map[reconcile.Request]time.Time{}}
		f.running[namespace] = own
	case f.Workers > 1 && len(own.began) >= f.Workers/2 && own.isSlow(now):
		return false
	}
	own.began[req] = now
	return true
}

func (f *Fair) end(namespace string, req reconcile.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, own := f.Now(), f.running[namespace]
	if now.Sub(own.began[req]) >= slowAfter {
		own.slowUntil = now.Add(slowFor)
	}
	if delete(own.began, req); len(own.began) == 0 && !now.Before(own.slowUntil) {
		delete(f.running, namespace)
	}
}
