package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

const (
	// gracePeriod is the time for a process to exit before it is killed.
	gracePeriod = 5 * time.Second
	// stableAfter is the time after which the exit of a process does not count as a failed start.
	stableAfter = 30 * time.Second
	// firstPause and lastPause limit the backoff before a failed process is started again.
	firstPause, lastPause = time.Second, time.Minute
)

// Supervisor supervises the load balancer processes of a data directory, for the container backend. Package manager
// creates it. The processes outlive it: a later Supervisor finds a running process by its lock.
type Supervisor struct {
	// Root contains one directory for each load balancer, by name.
	Root string
	// Command is the program with its arguments, to which the path of the directory is appended.
	Command []string
	// OnExit is called with the name of each load balancer whose process exited, if this program started it. It must not
	// block. May be nil.
	OnExit func(name string)

	mu sync.Mutex
	// own contains the running processes that this program started, by name. A process has no lock yet while it starts.
	own map[string]*childproc.Process
	// failed contains the processes that exited soon after their start, by name.
	failed map[string]startFailures
}

// startFailures is the backoff state of a process that exits soon after its start.
type startFailures struct {
	count int
	// until is the time of the next start.
	until time.Time
}

// Status is the observed state of a load balancer. The container backend converts it to backend.Balancer.
type Status struct {
	// Running is set if its process runs.
	Running bool
	PID     int
	State   State
	// Failure is the reason why it does not run. Empty: unknown.
	Failure string
}

// Ensure writes the configuration of the load balancer and starts its process unless one is running. It does not wait
// until the process listens. A failing process is started again with exponential backoff. The container backend calls
// it in each EnsureBalancer.
func (k *Supervisor) Ensure(name string, c Config) (Status, error) {
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

// Status returns the observed state of the load balancer; found is false if it does not exist. The container backend
// calls it in each FindBalancer.
func (k *Supervisor) Status(name string) (s Status, found bool, err error) {
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

// Config returns the configuration of the load balancer. The error is os.ErrNotExist if there is none.
func (k *Supervisor) Config(name string) (Config, error) {
	f, err := k.folder(name)
	if err != nil {
		return Config{}, err
	}
	return f.Load()
}

func (k *Supervisor) status(f Folder) (Status, error) {
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
func (k *Supervisor) launch(name string, f Folder) error {
	p, err := childproc.Service{Command: append(slices.Clip(k.Command), string(f)), Dir: string(f), Log: f.Log()}.Start()
	if err != nil {
		return fmt.Errorf("start load balancer %s: %w", name, err)
	}
	if k.own == nil {
		k.own, k.failed = map[string]*childproc.Process{}, map[string]startFailures{}
	}
	k.own[name] = p
	began := time.Now()
	go func() {
		<-p.Done()
		k.recordExit(name, p, time.Since(began))
		if k.OnExit != nil {
			k.OnExit(name)
		}
	}()
	return nil
}

// recordExit records the exit of a process and the time that it ran.
func (k *Supervisor) recordExit(name string, p *childproc.Process, ran time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.own[name] != p { // removed in the meantime
		return
	}
	delete(k.own, name)
	if ran >= stableAfter {
		delete(k.failed, name)
		return
	}
	n := k.failed[name].count + 1
	k.failed[name] = startFailures{count: n, until: time.Now().Add(pause.Backoff(n, firstPause, lastPause))}
}

// Remove stops the load balancer and deletes its directory. A load balancer that does not exist is not an error. The
// container backend calls it for a deleted LocalCluster or a changed address.
func (k *Supervisor) Remove(ctx context.Context, name string) error {
	f, err := k.folder(name)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.failed, name)
	if p := k.own[name]; p != nil {
		if err := p.Stop(ctx, gracePeriod); err != nil {
			return err
		}
		delete(k.own, name)
	}
	if _, err := childproc.Terminate(ctx, f.Lock(), gracePeriod); err != nil {
		return err
	}
	return os.RemoveAll(string(f))
}

// folder returns the directory of a load balancer, and an error for names that would lead out of the root directory.
func (k *Supervisor) folder(name string) (Folder, error) {
	if name == "" || name[0] == '.' || strings.ContainsAny(name, "/\\\x00") {
		return "", fault.New(fault.Bug, "LoadBalancerName", "%q cannot be the name of a load balancer", name)
	}
	return Folder(filepath.Join(k.Root, name)), nil
}

// StopAll stops every load balancer below root, including those that an earlier program started, for `slipway down` and
// the end of `slipway up`. Their directories are retained.
func StopAll(ctx context.Context, root string) error {
	list, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if e.IsDir() {
			_, failed := childproc.Terminate(ctx, Folder(filepath.Join(root, e.Name())).Lock(), gracePeriod)
			err = errors.Join(err, failed)
		}
	}
	return err
}
