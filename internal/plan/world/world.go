package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/slipwayhq/slipway/internal/plan/memory"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Options configures a world.
type Options struct {
	memory.Options
	// Now is the time when the copy was made.
	Now time.Time
	// Transform is the transformation of the manager's cache.
	Transform toolscache.TransformFunc
	// Plans records the decisions of controllers; may be nil.
	Plans reconciler.PlanStore
}

// World is a simulation of a management cluster. Package plan creates one for each run of `slipway plan`: it adds the
// controllers ([World.Setup]), starts them, and calls [World.Settle] before and after the proposed change. Two runs
// with the same input must have the same result. Use it from one goroutine.
type World struct {
	API *memory.API

	plans     reconciler.PlanStore
	transform toolscache.TransformFunc
	manager   *inMemory
	reader    *memory.Reader
	observers []func(memory.Event)
	others    []func()

	// mu protects the following fields, because controllers run in other goroutines.
	mu        sync.Mutex
	changed   *sync.Cond
	at        time.Time
	queues    []*queue
	expected  int // sources that were created but have not registered a handler yet
	listeners []*listener
	timers    map[string]timer
	sequence  int
	runnables []manager.Runnable
	failed    error
	intn      func(int) int
}

// timer is a function to call at a simulated time. Timers that are due together run in their order.
type timer struct {
	due   time.Time
	order int
	do    func()
}

// New returns an idle world. Package plan creates one for each run.
func New(o Options) *World {
	w := &World{at: o.Now, timers: map[string]timer{}, plans: o.Plans, transform: o.Transform}
	w.changed = sync.NewCond(&w.mu)
	random := rand.New(rand.NewPCG(1, 2)) // a fixed seed, so that repeated runs generate the same names
	w.intn = func(n int) int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return random.IntN(n)
	}
	o.Options.Now = w.Now
	w.API = memory.New(o.Options)
	w.reader = w.API.Reader(o.Transform)
	w.manager = newManager(w, o.Scheme)
	return w
}

// Now returns the simulated time.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// Setup returns the setup for the controllers of this world, in place of the manager's.
func (w *World) Setup() reconciler.Setup {
	return reconciler.Setup{
		Manager: w.manager, Concurrency: 1, Plans: w.plans,
		Environment: reconciler.Environment{Now: w.Now, Intn: w.intn, Queue: w.newQueue},
	}
}

// Observe calls f for every write, in order, after the caches were updated. Package plan's log, [Providers] and
// [Collector] register themselves with it before the run starts.
func (w *World) Observe(f func(memory.Event)) { w.observers = append(w.observers, f) }

// OnDeliver calls f whenever writes are delivered, to deliver the writes of other APIs. [Workloads] registers itself
// with it.
func (w *World) OnDeliver(f func()) { w.others = append(w.others, f) }

// After calls do after a simulated duration. If there is a timer with the same name, only the one that expires sooner
// remains.
func (w *World) After(d time.Duration, name string, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	due := w.at.Add(d)
	if t, ok := w.timers[name]; ok && !t.due.After(due) {
		return
	}
	w.sequence++
	w.timers[name] = timer{due: due, order: w.sequence, do: do}
}

// Start starts the added controllers. They stop when the context is done.
func (w *World) Start(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { w.fail(ctx.Err()) })
	defer stop()
	for n, r := range w.runnables {
		go func() {
			if err := r.Start(ctx); err != nil {
				w.fail(fmt.Errorf("starting a controller: %w", err))
			}
		}()
		if err := w.started(n + 1); err != nil {
			return err
		}
	}
	return nil
}

// started waits until n controllers are waiting for work. Controllers are started one after the other, so that the
// order of their queues is fixed.
func (w *World) started(n int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.failed == nil && (len(w.queues) < n || !w.queues[n-1].waits) {
		w.changed.Wait()
	}
	return w.failed
}

func (w *World) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
	w.changed.Broadcast()
}

// Limits limits a run.
type Limits struct {
	// Reconciliations is the maximum number of reconciliations.
	Reconciliations int
	// Time is the maximum simulated time.
	Time time.Duration
	// Quiet is the simulated time without a write after which the world counts as settled.
	Quiet time.Duration
}

// Settled is the result of a run. Package plan reports Complete in the plan.
type Settled struct {
	// Complete is true if nothing is left to do.
	Complete bool
	// Reconciliations is the number of reconciliations, and Time the simulated time until the last write.
	Reconciliations int
	Time            time.Duration
}

// Proceed runs all pending reconciliations without advancing the clock. Package plan calls it after it has applied a
// ClusterClass, because a Cluster of this class may follow.
func (w *World) Proceed(ctx context.Context) error {
	_, err := w.Settle(ctx, Limits{Reconciliations: maxNow, Time: 0, Quiet: 0})
	return err
}

// maxNow is the maximum number of reconciliations without advancing the clock.
const maxNow = 10000

// Settle runs the world until nothing changes any more, or a limit is reached.
func (w *World) Settle(ctx context.Context, limits Limits) (Settled, error) {
	stop := context.AfterFunc(ctx, func() { w.fail(ctx.Err()) })
	defer stop()
	began := w.Now()
	wrote, idle := began, 0
	var out Settled
	for {
		if w.deliver(ctx) {
			wrote, idle = w.Now(), 0
			out.Time = wrote.Sub(began)
		}
		batch, err := w.ready()
		if err != nil {
			return out, err
		}
		for _, one := range batch {
			if out.Reconciliations++; out.Reconciliations > limits.Reconciliations {
				return out, nil
			}
			if err := one.queue.run(one.request); err != nil {
				return out, err
			}
			if w.deliver(ctx) {
				wrote, idle = w.Now(), 0
			}
		}
		if len(batch) > 0 {
			continue
		}
		idle++
		more := w.advance(wrote.Add(limits.Quiet), began.Add(limits.Time))
		if !more || idle > w.maxIdleSteps() {
			out.Complete = w.Now().Before(began.Add(limits.Time))
			out.Time = wrote.Sub(began)
			return out, nil
		}
	}
}

// maxIdleSteps returns how many times the clock may advance without a write before the world counts as settled. It
// exceeds the number of waiting objects, because each of them may wait for a different time.
func (w *World) maxIdleSteps() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 20 + len(w.timers)
	for _, q := range w.queues {
		n += len(q.delayed)
	}
	return n
}

// ready returns the pending requests, in the order of the controllers and of names.
func (w *World) ready() ([]due, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []due
	for _, q := range w.queues {
		out = append(out, q.take()...)
	}
	return out, w.failed
}

// advance moves the clock to the next timer, and reports whether there is one before both given times.
func (w *World) advance(quiet, end time.Time) bool {
	w.mu.Lock()
	next, found := time.Time{}, false
	sooner := func(t time.Time) {
		if !found || t.Before(next) {
			next, found = t, true
		}
	}
	for _, t := range w.timers {
		sooner(t.due)
	}
	for _, q := range w.queues {
		for _, t := range q.delayed {
			sooner(t)
		}
	}
	if !found || next.After(quiet) || next.After(end) {
		w.mu.Unlock()
		return false
	}
	if next.After(w.at) {
		w.at = next
	}
	var ended []timer
	for name, t := range w.timers {
		if !t.due.After(w.at) {
			ended = append(ended, t)
			delete(w.timers, name)
		}
	}
	for _, q := range w.queues {
		q.releaseDue(w.at)
	}
	w.mu.Unlock()
	slices.SortFunc(ended, func(a, b timer) int { return a.order - b.order })
	for _, t := range ended {
		t.do()
	}
	return true
}

// deliver sends every write to the listeners, and reports whether there was any.
func (w *World) deliver(ctx context.Context) (any bool) {
	for {
		w.await()
		for _, f := range w.others {
			f()
		}
		events := w.API.Events()
		if len(events) == 0 || ctx.Err() != nil {
			return any
		}
		any = true
		for _, e := range events {
			for _, l := range w.listening(e.Kind.GroupKind()) {
				l.deliver(w.reader, e)
			}
			for _, f := range w.observers {
				f(e)
			}
		}
	}
}

// await waits until every created source has registered its handler.
func (w *World) await() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.expected > 0 && w.failed == nil {
		w.changed.Wait()
	}
}

func (w *World) listening(kind schema.GroupKind) []*listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*listener
	for _, l := range w.listeners {
		if l.kind.GroupKind() == kind {
			out = append(out, l)
		}
	}
	return out
}

// Client returns a client for writes by users. Package plan applies the proposed change with it.
func (w *World) Client() client.Client { return w.API.Client(nil) }
