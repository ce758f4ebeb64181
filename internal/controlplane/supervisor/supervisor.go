package supervisor

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

	"k8s.io/klog/v2"

	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// reasonVersion is the reason of the fault for a version that is not available on this host.
const reasonVersion = "VersionNotSupported"

// Config configures a Supervisor. The manager sets it.
type Config struct {
	Root     string           // directory with one subdirectory for each control plane
	Command  []string         // program and arguments, to which the path of the configuration is appended
	Versions func() []string  // Kubernetes versions that Command can run, the oldest first
	Now      func() time.Time // clock of the supervision loops
	// Transfers records the control planes that are transferred to another management cluster on this host. Nil
	// means none.
	Transfers *hosttransfer.Store
	// SeparateUsers runs each control plane under a separate user if this program is root. Command must support
	// the flag --user.
	SeparateUsers bool
}

// Supervisor supervises the control planes of HostedControlPlanes with the backend "process". The manager has one;
// package hosted/process calls it for the HostedControlPlane controller. Its zero value is not usable; see [New]. The
// processes outlive it.
type Supervisor struct {
	cfg  Config // SeparateUsers is reset if separate users are not possible
	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup
	// Subscribers are notified of each control plane whose status changed.
	watches.Subscribers

	mu       sync.Mutex
	children map[string]*supervisionLoop
}

// New returns a Supervisor that runs until ctx ends or Close is called. Package manager calls it at its start.
func New(ctx context.Context, cfg Config) *Supervisor {
	ctx, stop := context.WithCancel(ctx)
	if cfg.SeparateUsers {
		err := uidisolation.Unavailable(cfg.Root)
		cfg.SeparateUsers = err == nil
		if err != nil && !errors.Is(err, uidisolation.ErrNotRoot) {
			klog.FromContext(ctx).Info("hosted control planes run as root and not under separate users", "reason", err.Error())
		}
	}
	return &Supervisor{cfg: cfg, ctx: ctx, stop: stop, children: map[string]*supervisionLoop{}}
}

// Close ends the supervision without stopping the processes.
func (s *Supervisor) Close() {
	s.stop()
	s.wait.Wait()
}

// Folder returns the directory of the control plane with this name. Its PKI directory must contain the CAs
// before Ensure is called.
func (s *Supervisor) Folder(name string) processconfig.Folder {
	return processconfig.Folder(filepath.Join(s.cfg.Root, name))
}

// Versions returns the available Kubernetes versions.
func (s *Supervisor) Versions() []string { return s.cfg.Versions() }

// Ensure makes the control plane run with cfg: it starts it, adopts it, or restarts it if it runs with
// another configuration. It does not wait; Status returns the progress, and subscribers are notified of
// changes. A version that is not available on this host results in a fault of kind Invalid without changes. Package
// hosted/process calls it.
func (s *Supervisor) Ensure(_ context.Context, name string, cfg processconfig.Config) (Status, error) {
	if err := validName(name); err != nil {
		return Status{}, err
	}
	if all := s.Versions(); !slices.Contains(all, cfg.Version) {
		return Status{}, fault.New(fault.Invalid, reasonVersion, "Kubernetes %s is not available on this host, which has %s",
			cfg.Version, strings.Join(all, ", "))
	}
	if err := cfg.Validate(); err != nil {
		return Status{}, err
	}
	release, err := s.BlockTransfer(name)
	if err != nil {
		return Status{}, err
	}
	defer release()
	if err := cfg.Save(s.Folder(name).Config()); err != nil {
		return Status{}, fmt.Errorf("control plane %s: %w", name, err)
	}
	return s.child(name, &cfg).status(), nil
}

// Status returns the state of a control plane. found is false if Ensure was never called for it and it has no
// directory.
func (s *Supervisor) Status(name string) (st Status, found bool, err error) {
	s.mu.Lock()
	c := s.children[name]
	s.mu.Unlock()
	if c != nil {
		st = c.status()
		st.Supervised = true
		return st, true, nil
	}
	if _, err := os.Stat(string(s.Folder(name))); errors.Is(err, os.ErrNotExist) {
		return Status{Name: name}, false, nil
	}
	st, err = observe(s.Folder(name))
	st.Name = name
	return st, true, err
}

// List returns all control planes that have a directory or were started, by name.
func (s *Supervisor) List() ([]Status, error) {
	all, err := Inspect(s.cfg.Root)
	if err != nil {
		return nil, err
	}
	for i := range all {
		s.mu.Lock()
		c := s.children[all[i].Name]
		s.mu.Unlock()
		if c != nil {
			all[i] = c.status()
		}
	}
	return all, nil
}

// Stop stops the process of a control plane gracefully, and returns when it is gone. It is not restarted
// until Ensure is called.
func (s *Supervisor) Stop(ctx context.Context, name string) error {
	return s.end(ctx, name, graceful)
}

func (s *Supervisor) end(ctx context.Context, name string, patience time.Duration) error {
	if err := validName(name); err != nil {
		return err
	}
	s.mu.Lock()
	c := s.children[name]
	s.mu.Unlock()
	if c != nil {
		return c.stop(ctx, patience)
	}
	return StopFolder(ctx, s.Folder(name), patience)
}

// Remove kills the process of a control plane and deletes its directory with all data. A graceful stop is not
// needed, because no data is retained.
func (s *Supervisor) Remove(ctx context.Context, name string) error {
	release, err := s.BlockTransfer(name)
	if err != nil {
		return err
	}
	defer release()
	if err := s.end(ctx, name, 0); err != nil {
		return err
	}
	s.mu.Lock()
	c := s.children[name]
	delete(s.children, name)
	s.mu.Unlock()
	if c != nil {
		c.close()
	}
	if err := os.RemoveAll(string(s.Folder(name))); err != nil {
		return fmt.Errorf("remove the data of control plane %s: %w", name, err)
	}
	return nil
}

// child returns the supervision loop of a control plane with the configuration cfg. A new loop is only
// started after cfg is set, because it would otherwise stop the process.
func (s *Supervisor) child(name string, cfg *processconfig.Config) *supervisionLoop {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.children[name]
	if c != nil {
		c.setDesired(cfg)
		return c
	}
	c = newLoop(s, name)
	c.setDesired(cfg)
	s.children[name] = c
	s.wait.Go(func() { c.loop(s.ctx) })
	return c
}

// validName rejects names that would escape the root directory.
func validName(name string) error {
	if name == "" || name[0] == '.' || strings.ContainsAny(name, "/\\\x00") {
		return fault.New(fault.Bug, "ControlPlaneName", "%q cannot be the name of a control plane", name)
	}
	return nil
}
