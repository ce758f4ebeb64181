// Package background runs work of handlers that takes longer than a call, for example a backup before a cluster is
// deleted, or a test after an upgrade.
//
//	backups := background.New(background.Config{})
//
//	func beforeDelete(ctx context.Context, in *hooksv1.BeforeClusterDeleteRequest, out *hooksv1.BeforeClusterDeleteResponse) error {
//		return backups.Hold(ctx, out, background.Job{
//			Key: string(in.Cluster.UID), Message: "the volumes are copied",
//			Work: func(ctx context.Context) error { return copyVolumes(ctx, in.Cluster) },
//		})
//	}
//
// [Runner.Hold] starts the work of a job with the first call, blocks the caller until it is done, and remembers its
// completion for some time. An error of the work is returned by one call; the next call starts the work again. The
// number of concurrent jobs is limited.
//
// The state is in memory. After a restart, or when a call reaches another replica, the work is started again: it must
// detect completed work, and tolerate concurrent execution.
package background

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
)

// Defaults of [Config] and [Job].
const (
	DefaultMost  = 10
	DefaultKeep  = time.Hour
	DefaultAgain = 10 * time.Second
)

// Config configures a [Runner]. The zero value has the defaults.
type Config struct {
	// Most is the maximum number of concurrent jobs. Others wait, and their callers are blocked meanwhile. Zero means
	// [DefaultMost].
	Most int
	// Keep is how long the completion of a job is remembered; zero means [DefaultKeep]. A later call starts the job
	// again.
	Keep time.Duration
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// Job is work for one object.
type Job struct {
	// Key identifies the job: the hook or handler, and the UID of the object. Only one job with the same key runs at a
	// time.
	Key string
	// Work executes the job. Its context has the logger and the trace of the call that started it, and ends with
	// [Runner.Stop].
	Work func(ctx context.Context) error
	// Message explains to users what the cluster waits for.
	Message string
	// Again is the delay until the caller calls again; zero means [DefaultAgain].
	Again time.Duration
}

// Runner runs jobs. Create it with [New].
type Runner struct {
	cfg     Config
	permits chan struct{}
	ended   context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	jobs    map[string]*state
}

// state is the state of a job: running, failed, or completed at a time.
type state struct {
	done bool
	err  error
	at   time.Time
}

// New returns a Runner.
func New(cfg Config) *Runner {
	if cfg.Most <= 0 {
		cfg.Most = DefaultMost
	}
	if cfg.Keep <= 0 {
		cfg.Keep = DefaultKeep
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Runner{cfg: cfg, permits: make(chan struct{}, cfg.Most), jobs: map[string]*state{}}
	r.ended, r.end = context.WithCancel(context.Background())
	return r
}

// Hold starts the work of the job, unless it is running, and blocks the caller until the work is done. Then it leaves
// the response unchanged. An error of the work is returned by one call; the next call starts the work again.
func (r *Runner) Hold(ctx context.Context, out hooksv1.RetryResponseObject, job Job) error {
	done, err := r.look(ctx, job)
	if err != nil || done {
		return err
	}
	again := job.Again
	if again <= 0 {
		again = DefaultAgain
	}
	extension.Hold(out, again, job.Message)
	return nil
}

// look returns the state of a job, and starts the job if it is not running.
func (r *Runner) look(ctx context.Context, job Job) (done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Now()
	for key, s := range r.jobs { // remove expired entries
		if s.done && now.Sub(s.at) > r.cfg.Keep {
			delete(r.jobs, key)
		}
	}
	switch s := r.jobs[job.Key]; {
	case s == nil && r.stopped: // another replica will start it, or this one after its restart
	case s == nil:
		s := &state{}
		r.jobs[job.Key] = s
		r.running.Add(1)
		go r.run(context.WithoutCancel(ctx), job, s)
	case s.done && s.err != nil:
		delete(r.jobs, job.Key)
		return true, s.err
	case s.done:
		return true, nil
	}
	return false, nil
}

func (r *Runner) run(ctx context.Context, job Job, s *state) {
	defer r.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ended, cancel)()
	var err error
	select {
	case r.permits <- struct{}{}:
		if err = r.ended.Err(); err == nil {
			err = guarded(ctx, job)
		}
		<-r.permits
	case <-r.ended.Done():
		err = r.ended.Err()
	}
	if err != nil {
		extension.Log(ctx).Error("the work in the background failed", "job", job.Key, "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.done, s.err, s.at = true, err, r.cfg.Now()
}

// guarded executes the work. The value of a panic is only logged, as for handlers.
func guarded(ctx context.Context, job Job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			extension.Log(ctx).Error("the work in the background panicked", "job", job.Key, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("the work of %q panicked", job.Key)
		}
	}()
	return job.Work(ctx)
}

// Stop cancels the contexts of all work, starts no more work, and returns when all work has ended or ctx ends.
func (r *Runner) Stop(ctx context.Context) error {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.end()
	ended := make(chan struct{})
	go func() {
		r.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("work in the background did not end: %w", ctx.Err())
	}
}
