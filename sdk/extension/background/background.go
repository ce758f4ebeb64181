// Package background runs work of handlers that takes longer than a call: a backup before a cluster is deleted, a test after an
// upgrade.
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
// Does: starts the work of a job with the first call, holds the caller back until it is done ([Runner.Hold]), and remembers for a
// while that it was; an error of the work is the error of one call, after which it is started again.
//
// Owns: what is running, in memory. After a restart, and when a call reaches another replica, the work is started again there:
// work has to find out what has been done already, and do no harm when it runs twice at the same time.
//
// Never: runs more than a number of jobs at a time.
//
// Read first: [Runner.Hold].
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

// Config of a [Runner]. The zero value has the defaults.
type Config struct {
	// Most is how many jobs run at a time; others wait for their turn while their callers are held back. Zero: [DefaultMost].
	Most int
	// Keep is how long it is remembered that a job is done; zero: [DefaultKeep]. A call after that starts it again.
	Keep time.Duration
	// Now is the clock; nil: [time.Now].
	Now func() time.Time
}

// Job is work for one object.
type Job struct {
	// Key names the work: the hook or handler, and the UID of what it is for. There is one job of a key at a time.
	Key string
	// Work does it. Its context has the logger and the trace of the call that started it, and ends with [Runner.Stop].
	Work func(ctx context.Context) error
	// Message says to users what the cluster waits for.
	Message string
	// Again is when the caller calls again; zero: [DefaultAgain].
	Again time.Duration
}

// Runner runs jobs. Make it with [New].
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

// state is that of a job: it runs, has failed, or is done since a time.
type state struct {
	done bool
	err  error
	at   time.Time
}

// New returns a runner.
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

// Hold holds the caller back until the work of the job is done, which it starts where it does not run. The response stays as it is
// when it is done. The error is that of the work, in one call; the next one starts it again.
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

// look returns how far a job is, and starts it where it does not run.
func (r *Runner) look(ctx context.Context, job Job) (done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Now()
	for key, s := range r.jobs { // what nothing calls for any more is not kept
		if s.done && now.Sub(s.at) > r.cfg.Keep {
			delete(r.jobs, key)
		}
	}
	switch s := r.jobs[job.Key]; {
	case s == nil && r.stopped: // another replica takes it over, or this one after its restart
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

// guarded does the work. What it panics with goes to the log alone, as for a handler.
func guarded(ctx context.Context, job Job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			extension.Log(ctx).Error("the work in the background panicked", "job", job.Key, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("the work of %q panicked", job.Key)
		}
	}()
	return job.Work(ctx)
}

// Stop ends the contexts of all work, starts no more, and returns when all of it has ended or ctx has.
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
