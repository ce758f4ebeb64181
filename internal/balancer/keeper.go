package balancer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/logfile"
	"github.com/slipwayhq/slipway/internal/plane/process"
)

const (
	// graceful is how long a process may take to end before it is killed.
	graceful = 5 * time.Second
	// stable is how long a process has to live for its end to be no failure of its start.
	stable = 30 * time.Second
	// firstPause and lastPause bound how long a process that fails is not started again.
	firstPause, lastPause = time.Second, time.Minute
)

// Keeper keeps the load balancers of a folder running. Their processes outlive it.
type Keeper struct {
	// Root has one folder for each, by its name.
	Root string
	// Command is the program and its arguments, before the path of the folder.
	Command []string
	// Ended is called with the name of each that ended, where this program started it. It must not block. May be nil.
	Ended func(name string)

	mu sync.Mutex
	// own are the processes that this program started and that live, by name: one that starts has no lock yet.
	own map[string]*launched
	// failed are those that ended soon after their start, by name.
	failed map[string]failure
}

// launched is a process that this program started.
type launched struct {
	process *os.Process
	ended   chan struct{} // closed when it has ended
}

// failure is what is known of a process that ends soon after its start.
type failure struct {
	count int
	// until is when it is started again.
	until time.Time
}

// Status is what is known of a load balancer.
type Status struct {
	// Running tells that its process lives.
	Running bool
	PID     int
	State   State
	// Failure is why it does not run; empty: that is not known.
	Failure string
}

// Ensure makes the load balancer of this name serve this. It takes over a process that lives, and starts one otherwise;
// it does not wait until that listens. One that fails is started again after growing pauses.
func (k *Keeper) Ensure(name string, c Config) (Status, error) {
	f, err := k.folder(name)
	if err != nil {
		return Status{}, err
	}
	if err := c.validate(); err != nil {
		return Status{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := f.Save(c); err != nil {
		return Status{}, fmt.Errorf("load balancer %s: %w", name, err)
	}
	s, err := k.status(f)
	if err != nil || s.Running || k.own[name] != nil || time.Now().Before(k.failed[name].until) {
		return s, err
	}
	return s, k.launch(name, f)
}

// Status returns what is known of the load balancer; found is false where it was never asked for.
func (k *Keeper) Status(name string) (s Status, found bool, err error) {
	f, err := k.folder(name)
	if err != nil {
		return s, false, err
	}
	if _, err := os.Stat(string(f)); errors.Is(err, os.ErrNotExist) {
		return s, false, nil
	}
	s, err = k.status(f)
	return s, true, err
}

// Config returns what the load balancer was told last; an error that is os.ErrNotExist: nothing.
func (k *Keeper) Config(name string) (Config, error) {
	f, err := k.folder(name)
	if err != nil {
		return Config{}, err
	}
	return f.Load()
}

func (k *Keeper) status(f Folder) (Status, error) {
	holder, held, err := datadir.Probe(f.Lock())
	if err != nil {
		return Status{}, err
	}
	state, err := f.ReadState()
	if !held {
		return Status{Failure: state.Failure}, err
	}
	return Status{Running: true, PID: holder.PID, State: state}, err
}

// launch starts the process.
func (k *Keeper) launch(name string, f Folder) error {
	log, err := logfile.Open(f.Log())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(k.Command[0], append(k.Command[1:len(k.Command):len(k.Command)], string(f))...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = string(f), log, log
	if err := process.Detach(cmd); err != nil {
		return fmt.Errorf("start load balancer %s: %w", name, err)
	}
	began, l := time.Now(), &launched{process: cmd.Process, ended: make(chan struct{})}
	if k.own == nil {
		k.own = map[string]*launched{}
	}
	k.own[name] = l
	go func() {
		_ = cmd.Wait()
		close(l.ended)
		k.note(name, l, time.Since(began))
		if k.Ended != nil {
			k.Ended(name)
		}
	}()
	return nil
}

// note notes that a process ended which lived this long.
func (k *Keeper) note(name string, l *launched, lived time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.own[name] != l { // it was removed
		return
	}
	delete(k.own, name)
	if lived >= stable {
		delete(k.failed, name)
		return
	}
	if k.failed == nil {
		k.failed = map[string]failure{}
	}
	n := k.failed[name].count
	k.failed[name] = failure{count: n + 1, until: time.Now().Add(min(firstPause<<min(n, 10), lastPause))}
}

// Remove ends the load balancer of this name and deletes its folder. One that was never asked for is no error.
func (k *Keeper) Remove(ctx context.Context, name string) error {
	f, err := k.folder(name)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.failed, name)
	if l := k.own[name]; l != nil {
		if err := l.end(ctx); err != nil {
			return err
		}
		delete(k.own, name)
	}
	if _, err := process.Terminate(ctx, f.Lock(), graceful); err != nil {
		return err
	}
	return os.RemoveAll(string(f))
}

// end ends the process, gracefully first.
func (l *launched) end(ctx context.Context) error {
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := l.process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		timer := time.NewTimer(graceful)
		defer timer.Stop()
		select {
		case <-l.ended:
			return nil
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("process %d does not end, not even by SIGKILL", l.process.Pid)
}

// folder keeps a name within the root folder.
func (k *Keeper) folder(name string) (Folder, error) {
	if name == "" || name[0] == '.' || strings.ContainsAny(name, "/\\\x00") {
		return "", fault.New(fault.Bug, "LoadBalancerName", "%q cannot be the name of a load balancer", name)
	}
	return Folder(filepath.Join(k.Root, name)), nil
}

// StopAll ends every load balancer below root, also those that an earlier program started. Their folders stay.
func StopAll(ctx context.Context, root string) error {
	list, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if e.IsDir() {
			_, failed := process.Terminate(ctx, Folder(filepath.Join(root, e.Name())).Lock(), graceful)
			err = errors.Join(err, failed)
		}
	}
	return err
}
