package jobs

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

// State is the state of a job, which controllers read in each reconciliation ([Runner.State]).
type State struct {
	// Running is true while the job runs. Busy is true if a new job would have to wait for others.
	Running, Busy bool
	// What describes the operation of the job.
	What string
	// Ended is the time at which the last run ended, or zero. Err is its result.
	Ended time.Time
	Err   error
}

// Limits limits the jobs that run at the same time, because each needs some MiB of buffers.
type Limits struct {
	// Total and Namespace limit the jobs of all objects and of the objects in one namespace.
	Total, Namespace int
}

// SnapshotLimits are the limits for jobs that copy etcd snapshots. The manager passes them to [NewRunner].
func SnapshotLimits() Limits { return Limits{Total: 4, Namespace: 1} }

// Runner runs jobs in the background, because they take minutes and must not block the workers of a controller. The
// manager has one for snapshots and restores, which the EtcdSnapshotPolicy, HostedControlPlane and LocalMachine
// controllers share so that its limits apply to all of them, and one for the controllers of the SSH provider. The zero
// value is not usable; see [NewRunner].
type Runner struct {
	ctx    context.Context
	now    func() time.Time
	limits Limits

	mu       sync.Mutex
	running  map[string]runningJob
	ended    map[string]State
	watchers map[int]func(key string)
	next     int
}

// runningJob is a job that runs.
type runningJob struct {
	what, namespace string
	cancel          context.CancelFunc
}

// NewRunner returns a Runner whose jobs run until ctx ends. The manager calls it at its start.
func NewRunner(ctx context.Context, now func() time.Time, limits Limits) *Runner {
	return &Runner{ctx: ctx, now: now, limits: limits, running: map[string]runningJob{}, ended: map[string]State{}, watchers: map[int]func(string){}}
}

// hasCapacity reports whether a job with the key may start for a namespace. A key has one job.
func (j *Runner) hasCapacity(namespace, key string) bool {
	if _, runs := j.running[key]; runs || len(j.running) >= j.limits.Total {
		return false
	}
	own := 0
	for _, other := range j.running {
		if other.namespace == namespace {
			own++
		}
	}
	return own < j.limits.Namespace
}

// namespaceOf returns the namespace of the object in a key.
func namespaceOf(key string) string {
	if parts := strings.Split(key, "/"); len(parts) >= 3 {
		return parts[1]
	}
	return ""
}

// Start runs a function under a key with the given description. It returns false if other jobs have to end first, such
// as one with the same key.
func (j *Runner) Start(key, what string, do func(context.Context) error) bool {
	return j.StartFor(namespaceOf(key), key, what, do)
}

// StartFor is [Runner.Start] for a job that counts for another namespace than the one of its object. The SSHHost controller
// counts the cleaning of a host for the namespace that used the host.
func (j *Runner) StartFor(namespace, key, what string, do func(context.Context) error) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.hasCapacity(namespace, key) || j.ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithCancel(j.ctx)
	j.running[key] = runningJob{what: what, namespace: namespace, cancel: cancel}
	delete(j.ended, key)
	go j.run(ctx, key, do)
	return true
}

// Cancel cancels the context of the running job with the key. It does nothing if there is none. The SSHMachine
// controller cancels the preparation of a host with it.
func (j *Runner) Cancel(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if job, ok := j.running[key]; ok {
		job.cancel()
	}
}

// run runs the function of a job, stores its result and notifies the subscribers.
func (j *Runner) run(ctx context.Context, key string, do func(context.Context) error) {
	err := fault.Recover(func() error { return do(ctx) })
	j.mu.Lock()
	j.running[key].cancel()
	j.ended[key] = State{What: j.running[key].what, Ended: j.now(), Err: err}
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
func (j *Runner) State(key string) State { return j.StateFor(namespaceOf(key), key) }

// StateFor is [Runner.State] for a job that is started with [Runner.StartFor].
func (j *Runner) StateFor(namespace, key string) State {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.ended[key]
	if job, running := j.running[key]; running {
		s.Running, s.What = true, job.what
		return s
	}
	s.Busy = !j.hasCapacity(namespace, key)
	return s
}

// Forget discards the result of the job with the key. The SSH controllers call it once the result is used, or the
// object is gone.
func (j *Runner) Forget(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.ended, key)
}

// Subscribe calls changed with the key of each finished job until cancel is called. The callback must not block.
func (j *Runner) Subscribe(changed func(key string)) (cancel func()) {
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

// Key returns the key of a job for an object, or for a part of an object with several jobs. [Runner.Changed] and the
// limits for namespaces parse this form.
func Key(kind string, o client.ObjectKey, part ...string) string {
	return strings.Join(append([]string{kind, o.Namespace, o.Name}, part...), "/")
}

// Changed enqueues the object of the given kind whose job has finished. The controllers of SSHHosts, SSHMachines,
// EtcdSnapshotPolicies and HostedControlPlanes watch it. It does nothing if j is nil.
func (j *Runner) Changed(kind string) source.Source {
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
