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

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/whatif/memory"
)

// Options of a world.
type Options struct {
	memory.Options
	// Now is when the copy was made.
	Now time.Time
	// Transform is what the manager's cache does to what it keeps.
	Transform toolscache.TransformFunc
	// Plans are told what controllers decide; may be nil.
	Plans loop.Plans
}

// World is a copy of the world. It is used from one goroutine.
type World struct {
	API *memory.API

	plans     loop.Plans
	transform toolscache.TransformFunc
	manager   *inMemory
	reader    *memory.Reader
	observers []func(memory.Event)
	others    []func()

	// mu is held while the following is used: controllers run in goroutines of their own.
	mu        sync.Mutex
	changed   *sync.Cond
	at        time.Time
	queues    []*queue
	expected  int // sources that were made, and do not listen yet
	listeners []*listener
	timers    map[string]timer
	sequence  int
	runnables []manager.Runnable
	failed    error
	intn      func(int) int
}

type timer struct {
	due   time.Time
	order int
	do    func()
}

// New returns a world in which nothing happens yet.
func New(o Options) *World {
	w := &World{at: o.Now, timers: map[string]timer{}, plans: o.Plans, transform: o.Transform}
	w.changed = sync.NewCond(&w.mu)
	random := rand.New(rand.NewPCG(1, 2)) // names are the same whenever the same is asked
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

// Now is the time in the world.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// Setup is what controllers of this world are added with.
func (w *World) Setup() loop.Setup {
	return loop.Setup{
		Manager: w.manager, Concurrency: 1, Plans: w.plans,
		World: loop.World{Now: w.Now, Intn: w.intn, Queue: w.newQueue},
	}
}

// Observe calls f for every write, in order, after the caches have it.
func (w *World) Observe(f func(memory.Event)) { w.observers = append(w.observers, f) }

// Also calls f whenever writes are handed out, for those of APIs besides this one.
func (w *World) Also(f func()) { w.others = append(w.others, f) }

// After calls do when that much time has passed in the world. A timer of the same name that would end sooner stays.
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

// Start starts the controllers that were added. They end with the context.
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

// started waits until so many controllers wait for work: they are started one after the other, which is the order of their
// queues.
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

// Limits bound how long a world is run.
type Limits struct {
	// Reconciliations at most.
	Reconciliations int
	// Time in the world at most.
	Time time.Duration
	// Quiet is after how much time in the world without a write it counts as settled.
	Quiet time.Duration
}

// Settled is how a run ended.
type Settled struct {
	// Fixed: nothing is left to do.
	Fixed bool
	// Reconciliations that it took, and time in the world until the last write.
	Reconciliations int
	Time            time.Duration
}

// Proceed runs what is to be done now, without letting time pass.
func (w *World) Proceed(ctx context.Context) error {
	_, err := w.Settle(ctx, Limits{Reconciliations: maxNow, Time: 0, Quiet: 0})
	return err
}

// maxNow is how many reconciliations there are at most at one time.
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
		if !more || idle > w.patience() {
			out.Fixed = w.Now().Before(began.Add(limits.Time))
			out.Time = wrote.Sub(began)
			return out, nil
		}
	}
}

// patience is how often the clock is moved without a write before the world counts as settled: more often than there are
// objects that wait for a time, which may be told apart by it.
func (w *World) patience() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 20 + len(w.timers)
	for _, q := range w.queues {
		n += len(q.delayed)
	}
	return n
}

// ready returns what is to be reconciled now, in the order of the controllers and of names.
func (w *World) ready() ([]due, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []due
	for _, q := range w.queues {
		out = append(out, q.take()...)
	}
	return out, w.failed
}

// advance moves the clock to the next timer, and reports whether there was one before both times.
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
		q.wake(w.at)
	}
	w.mu.Unlock()
	slices.SortFunc(ended, func(a, b timer) int { return a.order - b.order })
	for _, t := range ended {
		t.do()
	}
	return true
}

// deliver hands every write to who listens, and reports whether there was any.
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
				l.tell(w.reader, e)
			}
			for _, f := range w.observers {
				f(e)
			}
		}
	}
}

// await waits until every source that was made listens.
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

// Client writes as someone who is not a controller.
func (w *World) Client() client.Client { return w.API.Client(nil) }
