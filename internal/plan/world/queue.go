package world

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Retries of a failed reconciliation start with the first delay, which doubles up to the last.
const firstRetry, lastRetry = 50 * time.Millisecond, 30 * time.Second

// queue is the work queue of one controller, in place of controller-runtime's. The World decides when its worker
// receives a request. The rate limiter returns the delay of a retry, in simulated time. controller-runtime and the
// event handlers call the methods of its interface, and the World calls the others.
type queue struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	world *World
	// ready are the requests to reconcile, and delayed the requests with their times.
	ready   map[reconcile.Request]bool
	delayed map[reconcile.Request]time.Time
	handed  chan reconcile.Request
	done    chan struct{}
	ended   chan struct{}
	// waits is true once its worker has started.
	waits, down bool
}

var _ workqueue.TypedRateLimitingInterface[reconcile.Request] = &queue{}

// due is a request to reconcile. [World.Settle] passes it to the queue of its controller.
type due struct {
	queue   *queue
	request reconcile.Request
}

// newQueue returns the queue of a controller. controller-runtime calls it when the controller starts.
func (w *World) newQueue(_ string, _ workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := &queue{
		TypedRateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		world:            w, ready: map[reconcile.Request]bool{}, delayed: map[reconcile.Request]time.Time{},
		handed: make(chan reconcile.Request), done: make(chan struct{}), ended: make(chan struct{}),
	}
	w.queues = append(w.queues, q)
	return q
}

// take removes and returns the ready requests. The lock must be held. [World.ready] calls it.
func (q *queue) take() []due {
	var out []due
	for _, r := range slices.SortedFunc(maps.Keys(q.ready), func(a, b reconcile.Request) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	}) {
		out = append(out, due{queue: q, request: r})
	}
	clear(q.ready)
	return out
}

// releaseDue moves delayed requests that are due to the ready ones. The lock must be held. [World] calls it after it
// has advanced the clock.
func (q *queue) releaseDue(now time.Time) {
	for r, at := range q.delayed {
		if !at.After(now) {
			delete(q.delayed, r)
			q.ready[r] = true
		}
	}
}

// run passes a request to the worker and waits until it is done. [World.Settle] calls it for one request after the
// other.
func (q *queue) run(r reconcile.Request) error {
	select {
	case q.handed <- r:
	case <-q.ended:
		return q.world.ended()
	}
	select {
	case <-q.done:
		return nil
	case <-q.ended:
		return q.world.ended()
	}
}

func (w *World) ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

func (q *queue) Add(r reconcile.Request) {
	q.world.mu.Lock()
	defer q.world.mu.Unlock()
	q.ready[r] = true
}

func (q *queue) AddAfter(r reconcile.Request, d time.Duration) {
	q.world.mu.Lock()
	defer q.world.mu.Unlock()
	at := q.world.at.Add(d)
	if was, ok := q.delayed[r]; !ok || at.Before(was) {
		q.delayed[r] = at
	}
}

func (q *queue) AddRateLimited(r reconcile.Request) { q.AddAfter(r, q.When(r)) }

func (q *queue) Len() int {
	q.world.mu.Lock()
	defer q.world.mu.Unlock()
	return len(q.ready)
}

func (q *queue) Get() (reconcile.Request, bool) {
	q.world.mu.Lock()
	if !q.waits {
		q.waits = true
		q.world.changed.Broadcast()
	}
	q.world.mu.Unlock()
	select {
	case r := <-q.handed:
		return r, false
	case <-q.ended:
		return reconcile.Request{}, true
	}
}

func (q *queue) Done(reconcile.Request) {
	select {
	case q.done <- struct{}{}:
	case <-q.ended:
	}
}

func (q *queue) ShutDown() {
	q.world.mu.Lock()
	defer q.world.mu.Unlock()
	if !q.down {
		q.down = true
		close(q.ended)
	}
}

func (q *queue) ShutDownWithDrain() { q.ShutDown() }

func (q *queue) ShuttingDown() bool {
	q.world.mu.Lock()
	defer q.world.mu.Unlock()
	return q.down
}
