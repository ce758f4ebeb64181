package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// Intervals of the supervision loop.
const (
	lockCheckInterval = 500 * time.Millisecond // between checks of the lock of a process that is not a child of this one
	healthEvery       = 5 * time.Second
	healthSoon        = 300 * time.Millisecond // while it is not ready
)

// logLines is the number of log lines that are stored after an unexpected exit.
const logLines = 15

// supervisionLoop supervises one control plane: each iteration observes the process, calls [next] for a decision, and
// acts on it. The [Supervisor] starts one goroutine with it for each control plane.
type supervisionLoop struct {
	s      *Supervisor
	name   string
	folder processconfig.Folder
	health *health
	poke   chan struct{}
	quit   chan struct{}
	done   chan struct{} // the loop has ended
	once   sync.Once

	mu     sync.Mutex
	wanted *processconfig.Config
	seen   Status

	acting        sync.Mutex // held while the process is checked, started or stopped
	state         processState
	childProcess  *childproc.Process // own child process, or nil
	pid           int                // of the process that was last seen or started
	lock          *datadir.Lock      // excludes other programs from the directory; nil if not held
	stopRequested bool               // this program requested the exit
	hangReason    string             // reason why this program stopped a process that hangs, or empty
}

// newLoop returns the loop for one control plane, which does not run yet. The [Supervisor] calls it.
func newLoop(s *Supervisor, name string) *supervisionLoop {
	c := &supervisionLoop{
		s: s, name: name, folder: s.Folder(name), poke: make(chan struct{}, 1),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	c.health = newHealth(c.folder, c.trigger)
	c.seen, _ = observe(c.folder) // the loop reports errors
	c.seen.Name = name
	if c.seen.Running { // from now on, its end counts as an unexpected exit, even before the first iteration of the loop
		c.state.alive, c.state.since = true, s.cfg.Now()
	}
	return c
}

func (c *supervisionLoop) setDesired(cfg *processconfig.Config) {
	c.mu.Lock()
	c.wanted = cfg
	c.mu.Unlock()
	c.trigger()
}

// trigger triggers an iteration of the loop.
func (c *supervisionLoop) trigger() {
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

// status returns the current status. [Supervisor.Status] and other methods call it.
func (c *supervisionLoop) status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// close ends the loop. [Supervisor.Remove] calls it.
func (c *supervisionLoop) close() {
	c.once.Do(func() { close(c.quit) })
	<-c.done
}

// stop stops the process, without restarting it, and returns when it is gone. [Supervisor.Stop] and [Supervisor.Remove]
// call it.
func (c *supervisionLoop) stop(ctx context.Context, patience time.Duration) error {
	c.setDesired(nil)
	c.acting.Lock()
	defer c.acting.Unlock()
	return c.end(ctx, patience)
}

// end stops the process. It is called with acting held.
func (c *supervisionLoop) end(ctx context.Context, patience time.Duration) error {
	c.stopRequested = true
	if c.childProcess != nil {
		if err := c.childProcess.Stop(ctx, patience); err != nil {
			return err
		}
	}
	return StopFolder(ctx, c.folder, patience)
}

// loop observes, decides and acts until ctx ends or the loop is closed. The [Supervisor] runs it in a goroutine.
func (c *supervisionLoop) loop(ctx context.Context) {
	defer close(c.done)
	defer c.releaseFolder()
	log := klog.FromContext(ctx).WithValues("controlPlane", c.name)
	for {
		wake, ended, err := c.iterate(ctx)
		switch {
		case errors.Is(err, errReleased):
			if c.s.forget(c) {
				log.Info("stopping supervision of a control plane that was transferred or deleted")
				c.releaseFolder()
				c.s.Notify(c.name)
				return
			}
			wake = lockCheckInterval
		case err != nil:
			log.Error(err, "supervising a control plane process failed, retrying")
			wake = time.Second
		}
		timer := time.NewTimer(wake)
		select {
		case <-ended:
		case <-c.poke:
		case <-timer.C:
		case <-c.quit:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// iterate is one iteration. It returns the time until the next one, unless the own child process exits before.
func (c *supervisionLoop) iterate(ctx context.Context) (wake time.Duration, ended <-chan struct{}, err error) {
	c.acting.Lock()
	defer c.acting.Unlock()
	wake, err = c.round(ctx)
	if c.childProcess != nil {
		ended = c.childProcess.Done()
	}
	return wake, ended, err
}

// errReleased ends a loop that has nothing to supervise any more.
var errReleased = errors.New("the control plane was transferred or deleted")

func (c *supervisionLoop) round(ctx context.Context) (time.Duration, error) {
	now := c.s.cfg.Now()
	holds, gone, err := c.acquireFolder()
	switch {
	case err != nil:
		return 0, err
	case gone:
		return 0, errReleased
	case !holds:
		return lockCheckInterval, nil
	}
	st, err := c.observe(ctx, now)
	if err != nil {
		return 0, err
	}
	c.publish(st)
	do, again, reason := next(c.state, now)
	switch do {
	case start:
		return lockCheckInterval, c.start(ctx)
	case end:
		klog.FromContext(ctx).Info("stopping control plane process", "controlPlane", c.name, "pid", st.PID, "reason", reason)
		return 0, c.end(ctx, graceful)
	case restartHung:
		klog.FromContext(ctx).Info("restarting unresponsive control plane process", "controlPlane", c.name, "pid", st.PID, "reason", reason)
		c.hangReason = reason
		return 0, c.end(ctx, graceful)
	}
	wake := lockCheckInterval
	if !again.IsZero() {
		wake = min(wake, max(again.Sub(now), time.Millisecond))
	}
	return wake, nil
}

// observe updates the input of [next] and returns the current status.
func (c *supervisionLoop) observe(ctx context.Context, now time.Time) (Status, error) {
	c.mu.Lock()
	wanted := c.wanted
	c.mu.Unlock()
	run, alive, err := c.folder.ReadRun()
	if err != nil {
		return Status{}, err
	}
	if alive && c.childProcess != nil && !c.childProcess.Running() {
		c.childProcess = nil // another process holds the lock, and the own one has exited
	}
	if alive {
		c.pid = run.PID
	}
	alive = alive || c.childProcess.Running() // the own process may not have acquired its lock yet
	c.transition(alive, now)
	c.state.wanted = wanted != nil
	c.state.current = wanted != nil && (run.Config == "" || (run.Config == wanted.Hash() && run.Version == wanted.Version))
	st, err := observe(c.folder)
	if err != nil {
		return Status{}, err
	}
	st.Name = c.name
	switch {
	case alive && run.RunMode == processconfig.RunEtcdOnly: // etcd alone reports once when it is ready
		st.EtcdReady = true
		c.state.recordHealthy(now)
	case alive:
		found, fresh := c.health.check(ctx, run.Local, now)
		st.Ready, st.EtcdReady = found.ready, found.etcd
		if fresh && (found.ready || found.live && c.state.wasHealthy) {
			c.state.recordHealthy(now)
		} else {
			c.state.progress.record(now, found.responded, func() work { return workOf(run.PID, run.Child) })
		}
	}
	return st, nil
}

// recordHealthy records a successful health check.
func (v *processState) recordHealthy(now time.Time) {
	v.wasHealthy = true
	v.progress.reset(now)
	if now.Sub(v.since) >= stableAfter {
		v.failures, v.hung = 0, 0
	}
}

// transition records that a process has started or exited.
func (c *supervisionLoop) transition(alive bool, now time.Time) {
	if alive == c.state.alive && !c.state.since.IsZero() {
		return
	}
	if c.state.alive && !alive {
		switch {
		case c.hangReason != "":
			c.state.failures++
			c.state.hung++
		case c.stopRequested:
			c.state.failures, c.state.hung = 0, 0
		default:
			c.state.failures++
		}
		c.recordExit()
	}
	c.state.alive, c.state.since, c.state.wasHealthy, c.state.progress = alive, now, false, progress{}
	c.health.reset()
}

// recordExit records an unexpected exit, or the stop of a process that hung.
func (c *supervisionLoop) recordExit() {
	how := "its exit status is unknown, because an earlier slipway process started it"
	if c.childProcess != nil {
		how = c.childProcess.State().String()
	}
	if reason := c.folder.ReadEnd(c.pid); reason != "" {
		how = reason
	}
	if space, err := datadir.SpaceOf(datadir.Dir(c.s.cfg.Root)); err == nil && space.IsFull() {
		how = "the disk of this host that its data is on is full"
	}
	if c.hangReason != "" {
		how = "it was stopped, because " + c.hangReason
	}
	asked := c.stopRequested && c.hangReason == ""
	c.childProcess, c.stopRequested, c.hangReason = nil, false, ""
	if asked {
		return
	}
	p, err := readHistory(c.folder)
	if err == nil {
		p.Restarts++
		p.LastExit = how
		p.LastLog, _ = childproc.TailLog(c.folder.Log(), logLines)
		err = p.write(c.folder)
	}
	if err != nil {
		klog.ErrorS(err, "recording the exit of a control plane process failed", "controlPlane", c.name, "end", how)
	}
}

func (c *supervisionLoop) start(ctx context.Context) error {
	user, err := c.user(ctx)
	var own *childproc.Process
	if err == nil {
		c.folder.ForgetEnd()
		own, err = launch(c.s.cfg.Command, c.folder, user)
	}
	if err != nil {
		c.state.failures++
		c.state.since = c.s.cfg.Now()
		return fmt.Errorf("start control plane %s: %w", c.name, err)
	}
	klog.FromContext(ctx).Info("started control plane process", "controlPlane", c.name, "pid", own.PID(), "user", user)
	c.childProcess, c.pid, c.stopRequested, c.hangReason = own, own.PID(), false, ""
	c.transition(true, c.s.cfg.Now()) // now, because it may have exited before the next iteration
	return nil
}

// user returns the user for the process, or 0 if it runs as the user of this program. It kills all other
// processes of this user.
func (c *supervisionLoop) user(ctx context.Context) (int, error) {
	if !c.s.cfg.SeparateUsers {
		return 0, nil
	}
	user, err := uidisolation.Assign(string(c.folder))
	if err != nil {
		return 0, err
	}
	return user, uidisolation.Kill(ctx, user)
}

func (c *supervisionLoop) publish(st Status) {
	c.mu.Lock()
	changed := !equalForSubscribers(c.seen, st)
	c.seen = st
	c.mu.Unlock()
	if changed {
		c.s.Notify(c.name)
	}
}
