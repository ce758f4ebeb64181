package snapshots

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/fault"
)

// JobState is the state of a job, which controllers read in each reconciliation ([Jobs.State]).
type JobState struct {
	// Running is true while the job runs. Busy is true if a new job would have to wait for others.
	Running, Busy bool
	// What describes the operation of the job.
	What string
	// Ended is the time at which the last run ended, or zero. Err is its result.
	Ended time.Time
	Err   error
}

// Jobs runs snapshots and restores in the background, because they take minutes and must not block the workers of a
// controller. The manager has one for the EtcdSnapshotPolicy, HostedControlPlane and LocalMachine controllers, so that
// its limits apply to all of them. The zero value is not usable; see [NewJobs].
type Jobs struct {
	ctx context.Context
	now func() time.Time

	mu       sync.Mutex
	running  map[string]string // descriptions by key
	ended    map[string]JobState
	watchers map[int]func(key string)
	next     int
}

// NewJobs returns Jobs that run until ctx ends.
func NewJobs(ctx context.Context, now func() time.Time) *Jobs {
	return &Jobs{ctx: ctx, now: now, running: map[string]string{}, ended: map[string]JobState{}, watchers: map[int]func(string){}}
}

// atOnce limits the number of concurrent jobs, because each needs some MiB of buffers.
const atOnce = 4

// hasCapacity reports whether a job with the key may start.
func (j *Jobs) hasCapacity(key string) bool {
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

// namespaceOf returns the namespace of the object in a key.
func namespaceOf(key string) string {
	if parts := strings.Split(key, "/"); len(parts) >= 3 {
		return parts[1]
	}
	return ""
}

// Start runs a function under a key with the given description. It returns false if other jobs have to end first.
func (j *Jobs) Start(key, what string, do func(context.Context) error) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.hasCapacity(key) || j.ctx.Err() != nil {
		return false
	}
	j.running[key] = what
	delete(j.ended, key)
	go j.run(key, do)
	return true
}

// run runs the function of a job, stores its result and notifies the subscribers.
func (j *Jobs) run(key string, do func(context.Context) error) {
	err := fault.Recover(func() error { return do(j.ctx) })
	j.mu.Lock()
	j.ended[key] = JobState{What: j.running[key], Ended: j.now(), Err: err}
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

// State returns the state of the job with the key.
func (j *Jobs) State(key string) JobState {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.ended[key]
	if what, running := j.running[key]; running {
		s.Running, s.What = true, what
		return s
	}
	s.Busy = !j.hasCapacity(key)
	return s
}

// Forget discards the result of the job with the key.
func (j *Jobs) Forget(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.ended, key)
}

// Subscribe calls changed with the key of each finished job until cancel is called. The callback must not block.
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

// JobKey returns the key of a job for an object, or for a part of an object with several jobs.
func JobKey(kind string, o client.ObjectKey, part ...string) string {
	return strings.Join(append([]string{kind, o.Namespace, o.Name}, part...), "/")
}

// Changed enqueues the object of the given kind whose job has finished. It does nothing if j is nil.
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
