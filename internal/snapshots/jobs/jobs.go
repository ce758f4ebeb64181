// Package jobs runs what takes minutes beside the controllers: a few at a time, and one of each namespace, so that what one tenant's
// etcd or store takes does not hold back the others.
//
// Does: runs a function under a key unless there is no room for it, remembers how it ended, and notifies of that.
//
// Never: retries, or survives the process: a controller that finds no job of its key starts one.
//
// Read first: [Jobs.Start].
package jobs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/fault"
)

// State is what is known of a job.
type State struct {
	// Running tells that it runs, Busy that it would have to wait for others.
	Running, Busy bool
	// What is what it does, or did.
	What string
	// Ended is when it ended the last time; zero: it has not. Err is how, nil for well.
	Ended time.Time
	Err   error
}

// Jobs runs jobs. The zero value is not usable; see [New].
type Jobs struct {
	ctx context.Context
	now func() time.Time

	mu       sync.Mutex
	running  map[string]string // by key, what each does
	ended    map[string]State
	watchers map[int]func(key string)
	next     int
}

// New returns Jobs that run until ctx ends.
func New(ctx context.Context, now func() time.Time) *Jobs {
	return &Jobs{ctx: ctx, now: now, running: map[string]string{}, ended: map[string]State{}, watchers: map[int]func(string){}}
}

// atOnce is how many jobs run at a time: each has some MiB of buffers.
const atOnce = 4

// hasRoom reports whether a job of a key may start.
func (j *Jobs) hasRoom(key string) bool {
	if len(j.running) >= atOnce {
		return false
	}
	for other := range j.running {
		if namespaceOf(other) == namespaceOf(key) {
			return false
		}
	}
	return true
}

// namespaceOf is that of the object of a key.
func namespaceOf(key string) string {
	if parts := strings.Split(key, "/"); len(parts) >= 3 {
		return parts[1]
	}
	return ""
}

// Start runs a function under a key, and what it does; false: others have to end before.
func (j *Jobs) Start(key, what string, do func(context.Context) error) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.hasRoom(key) || j.ctx.Err() != nil {
		return false
	}
	j.running[key] = what
	delete(j.ended, key)
	go j.run(key, do)
	return true
}

func (j *Jobs) run(key string, do func(context.Context) error) {
	err := guarded(j.ctx, do)
	j.mu.Lock()
	j.ended[key] = State{What: j.running[key], Ended: j.now(), Err: err}
	delete(j.running, key)
	var notify []func(string)
	for _, f := range j.watchers {
		notify = append(notify, f)
	}
	j.mu.Unlock()
	for _, f := range notify {
		f(key)
	}
}

// guarded makes an error of a panic.
func guarded(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Bug, "Panic", "%s", fmt.Sprint(p))
		}
	}()
	return do(ctx)
}

// State returns what is known of the job of a key.
func (j *Jobs) State(key string) State {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.ended[key]
	if what, running := j.running[key]; running {
		s.Running, s.What = true, what
		return s
	}
	s.Busy = !j.hasRoom(key)
	return s
}

// Forget drops how the job of a key ended.
func (j *Jobs) Forget(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.ended, key)
}

// Subscribe calls changed with the key of each job that ends, until cancel is called. It must not block.
func (j *Jobs) Subscribe(changed func(key string)) (cancel func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	id := j.next
	j.next++
	j.watchers[id] = changed
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.watchers, id)
	}
}

// Key is the key of a job for an object, and where an object has several, for a part of it.
func Key(kind string, o client.ObjectKey, part ...string) string {
	return strings.Join(append([]string{kind, o.Namespace, o.Name}, part...), "/")
}

// Changed enqueues the object of a kind whose job has ended. Where there are no jobs, none ends.
func (j *Jobs) Changed(kind string) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if j == nil {
			return nil
		}
		cancel := j.Subscribe(func(key string) {
			if parts := strings.Split(key, "/"); len(parts) >= 3 && parts[0] == kind {
				queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: parts[1], Name: parts[2]}})
			}
		})
		context.AfterFunc(ctx, cancel)
		return nil
	})
}
