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
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/logfile"
	"github.com/slipwayhq/slipway/internal/plane/process"
)

// graceful is how long a process may take to end before it is killed.
const graceful = 5 * time.Second

// Keeper keeps the load balancers of a folder running. Their processes outlive it.
type Keeper struct {
	// Root has one folder for each, by its name.
	Root string
	// Command is the program and its arguments, before the path of the folder.
	Command []string
	// Ended is called with the name of each that ended, where this program started it. It must not block. May be nil.
	Ended func(name string)

	mu sync.Mutex
}

// Status is what is known of a load balancer.
type Status struct {
	// Running tells that its process lives.
	Running bool
	PID     int
	State   State
	// Log is the last lines of one that does not run.
	Log string
}

// Ensure makes the load balancer of this name serve this. It takes over a process that lives, and starts one otherwise;
// it does not wait until that listens.
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
	if err != nil || s.Running {
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
	if !held {
		lines, err := logfile.Tail(f.Log(), 3)
		return Status{Log: strings.Join(lines, "\n")}, err
	}
	state, err := f.ReadState()
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
	go func() {
		_ = cmd.Wait()
		if k.Ended != nil {
			k.Ended(name)
		}
	}()
	return nil
}

// Remove ends the load balancer of this name and deletes its folder. One that was never asked for is no error.
func (k *Keeper) Remove(ctx context.Context, name string) error {
	f, err := k.folder(name)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return remove(ctx, f)
}

func remove(ctx context.Context, f Folder) error {
	if _, err := process.Terminate(ctx, f.Lock(), graceful); err != nil {
		return err
	}
	return os.RemoveAll(string(f))
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
