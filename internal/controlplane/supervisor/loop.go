package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// Intervals of the supervision loop.
const (
	lookEvery   = 500 * time.Millisecond // between checks of the lock of a process that is not a child of this one
	healthEvery = 5 * time.Second
	healthSoon  = 300 * time.Millisecond // while it is not ready
)

// logLines is the number of log lines that are stored after an unexpected exit.
const logLines = 15

// supervisionLoop supervises one control plane in a loop.
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
	view          processState
	own           *launched     // own child process, or nil
	pid           int           // of the process that was last seen or started
	lock          *datadir.Lock // excludes other programs from the directory; nil if not held
	stopRequested bool          // this program requested the exit
	hangReason    string        // reason why this program stopped a process that hangs, or empty
}

func newChild(s *Supervisor, name string) *supervisionLoop {
	c := &supervisionLoop{
		s: s, name: name, folder: s.Folder(name), poke: make(chan struct{}, 1),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	c.health = newHealth(c.folder, c.trigger)
	c.seen, _ = observe(c.folder) // the loop reports errors
	c.seen.Name = name
	if c.seen.Running { // from now on, its end counts as an unexpected exit, even before the first iteration of the loop
		c.view.alive, c.view.since = true, s.cfg.Now()
	}
	return c
}

func (c *supervisionLoop) want(cfg *processconfig.Config) {
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

func (c *supervisionLoop) status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// close ends the loop.
func (c *supervisionLoop) close() {
	c.once.Do(func() { close(c.quit) })
	<-c.done
}

// stop stops the process, without restarting it, and returns when it is gone.
func (c *supervisionLoop) stop(ctx context.Context, patience time.Duration) error {
	c.want(nil)
	c.acting.Lock()
	defer c.acting.Unlock()
	return c.end(ctx, patience)
}

// end is called with acting held.
func (c *supervisionLoop) end(ctx context.Context, patience time.Duration) error {
	c.stopRequested = true
	if c.own != nil {
		if err := c.own.end(ctx, patience); err != nil {
			return err
		}
	}
	return StopFolder(ctx, c.folder, patience)
}

// loop observes, decides and acts until ctx ends or the child is closed.
func (c *supervisionLoop) loop(ctx context.Context) {
	defer close(c.done)
	defer c.releaseFolder()
	log := klog.FromContext(ctx).WithValues("controlPlane", c.name)
	for {
		wake, ended, err := c.pass(ctx)
		switch {
		case errors.Is(err, errGone):
			if c.s.forget(c) {
				log.Info("another slipway of this host keeps the control plane, or its folder is gone")
				c.releaseFolder()
				c.s.notify(c.name)
				return
			}
			wake = lookEvery
		case err != nil:
			log.Error(err, "control plane process")
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

// pass is one iteration. It returns the time until the next one, unless the own child process exits before.
func (c *supervisionLoop) pass(ctx context.Context) (wake time.Duration, ended <-chan struct{}, err error) {
	c.acting.Lock()
	defer c.acting.Unlock()
	wake, err = c.round(ctx)
	if c.own != nil {
		ended = c.own.ended
	}
	return wake, ended, err
}

// errGone ends a loop that has nothing to supervise any more.
var errGone = errors.New("the folder is another slipway's, or gone")

func (c *supervisionLoop) round(ctx context.Context) (time.Duration, error) {
	now := c.s.cfg.Now()
	holds, gone, err := c.hold()
	switch {
	case err != nil:
		return 0, err
	case gone:
		return 0, errGone
	case !holds:
		return lookEvery, nil
	}
	st, err := c.observe(ctx, now)
	if err != nil {
		return 0, err
	}
	c.publish(st)
	do, again, reason := next(c.view, now)
	switch do {
	case start:
		return lookEvery, c.start(ctx)
	case end:
		klog.FromContext(ctx).Info("ending control plane process", "controlPlane", c.name, "pid", st.PID, "reason", reason)
		return 0, c.end(ctx, graceful)
	case giveUp:
		klog.FromContext(ctx).Info("restarting control plane process that hangs", "controlPlane", c.name, "pid", st.PID, "reason", reason)
		c.hangReason = reason
		return 0, c.end(ctx, graceful)
	}
	wake := lookEvery
	if !again.IsZero() {
		wake = min(wake, max(again.Sub(now), time.Millisecond))
	}
	return wake, nil
}

// observe updates the view.
func (c *supervisionLoop) observe(ctx context.Context, now time.Time) (Status, error) {
	c.mu.Lock()
	wanted := c.wanted
	c.mu.Unlock()
	run, alive, err := c.folder.ReadRun()
	if err != nil {
		return Status{}, err
	}
	if alive && c.own != nil && !c.own.lives() {
		c.own = nil // another process holds the lock, and the own one has exited
	}
	if alive {
		c.pid = run.PID
	}
	alive = alive || c.own.lives() // the own process may not have acquired its lock yet
	c.transition(alive, now)
	c.view.wanted = wanted != nil
	c.view.current = wanted != nil && (run.Config == "" || (run.Config == wanted.Hash() && run.Version == wanted.Version))
	st, err := observe(c.folder)
	if err != nil {
		return Status{}, err
	}
	st.Name = c.name
	switch {
	case alive && run.Only == processconfig.OnlyEtcd: // etcd alone reports once when it is ready
		st.EtcdReady = true
		c.view.well(now)
	case alive:
		found, fresh := c.health.check(ctx, run.Local, now)
		st.Ready, st.EtcdReady = found.ready, found.etcd
		if fresh && (found.ready || found.live && c.view.answered) {
			c.view.well(now)
		} else {
			c.view.progress.look(now, found.any, func() work { return workOf(run.PID, run.Child) })
		}
	}
	return st, nil
}

// well records a successful health check.
func (v *processState) well(now time.Time) {
	v.answered = true
	v.progress.well(now)
	if now.Sub(v.since) >= stableAfter {
		v.failures, v.hung = 0, 0
	}
}

// transition records that a process has started or exited.
func (c *supervisionLoop) transition(alive bool, now time.Time) {
	if alive == c.view.alive && !c.view.since.IsZero() {
		return
	}
	if c.view.alive && !alive {
		switch {
		case c.hangReason != "":
			c.view.failures++
			c.view.hung++
		case c.stopRequested:
			c.view.failures, c.view.hung = 0, 0
		default:
			c.view.failures++
		}
		c.died()
	}
	c.view.alive, c.view.since, c.view.answered, c.view.progress = alive, now, false, progress{}
	c.health.reset()
}

// died records an unexpected exit, or the stop of a process that hung.
func (c *supervisionLoop) died() {
	how := "it ended; how is unknown, because an earlier slipway had started it"
	if c.own != nil {
		how = c.own.how
	}
	if reason := c.folder.ReadEnd(c.pid); reason != "" {
		how = reason
	}
	if space, err := datadir.SpaceOf(datadir.Dir(c.s.cfg.Root)); err == nil && space.IsFull() {
		how = "the disk of this host that its data is on is full"
	}
	if c.hangReason != "" {
		how = "it was ended, because " + c.hangReason
	}
	asked := c.stopRequested && c.hangReason == ""
	c.own, c.stopRequested, c.hangReason = nil, false, ""
	if asked {
		return
	}
	p, err := readPast(c.folder)
	if err == nil {
		p.Restarts++
		p.LastExit = how
		p.LastLog, _ = TailLog(c.folder.Log(), logLines)
		err = p.write(c.folder)
	}
	if err != nil {
		klog.ErrorS(err, "record the end of a control plane process", "controlPlane", c.name, "end", how)
	}
}

func (c *supervisionLoop) start(ctx context.Context) error {
	user, err := c.user(ctx)
	var own *launched
	if err == nil {
		c.folder.ForgetEnd()
		own, err = launch(c.s.cfg.Command, c.folder, user)
	}
	if err != nil {
		c.view.failures++
		c.view.since = c.s.cfg.Now()
		return fmt.Errorf("start control plane %s: %w", c.name, err)
	}
	klog.FromContext(ctx).Info("started control plane process", "controlPlane", c.name, "pid", own.process.Pid, "user", user)
	c.own, c.pid, c.stopRequested, c.hangReason = own, own.process.Pid, false, ""
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
	changed := !same(c.seen, st)
	c.seen = st
	c.mu.Unlock()
	if changed {
		c.s.notify(c.name)
	}
}
