package process

import (
	"errors"
	"os"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/custody"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// ReasonHandedOver is the reason of the fault for a control plane that another slipway of this host is to keep.
const ReasonHandedOver = "HandedOver"

// Claim keeps a control plane from being handed over to another slipway until release is called. One that is being handed over is a
// fault of kind Conflict.
func (s *Supervisor) Claim(name string) (release func(), err error) {
	if s.cfg.Custody == nil {
		return func() {}, nil
	}
	release, err = s.cfg.Custody.Hold()
	if err != nil {
		return nil, err
	}
	if err := s.kept(name); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// kept returns a fault where another slipway is to keep the control plane.
func (s *Supervisor) kept(name string) error {
	if s.cfg.Custody == nil {
		return nil
	}
	holdings, err := s.cfg.Custody.Holdings()
	if err != nil {
		return err
	}
	_, giving := holdings.Giving(name)
	other, err := s.otherKeeper(s.Folder(name))
	if err != nil {
		return err
	}
	if giving || other {
		return fault.New(fault.Conflict, ReasonHandedOver, "Control plane %s is being handed over to another slipway on this host: run the \"slipway move\" that does so again, or with --rollback", name)
	}
	return nil
}

// otherKeeper reports whether another instance is to keep the control plane in a folder.
func (s *Supervisor) otherKeeper(f workload.Folder) (bool, error) {
	if s.cfg.Custody == nil {
		return false, nil
	}
	keeper, err := custody.Keeper(string(f))
	return keeper != "" && keeper != s.cfg.Custody.Instance(), err
}

// hold reports whether this program may act on the folder: no other slipway is to keep it, and none does. gone tells that it never
// will: the folder was handed over.
func (c *child) hold() (holds, gone bool, err error) {
	if c.s.cfg.Custody == nil {
		return true, false, nil
	}
	other, err := c.s.otherKeeper(c.folder)
	if err != nil {
		return false, false, err
	}
	if other {
		return false, true, nil
	}
	if _, err := os.Stat(string(c.folder)); errors.Is(err, os.ErrNotExist) {
		return false, true, nil
	}
	if c.lock != nil {
		return true, false, nil
	}
	host, _ := os.Hostname()
	holder := datadir.Holder{PID: os.Getpid(), Host: host, Since: c.s.cfg.Now().UTC(), Version: buildinfo.Version()}
	lock, _, held, err := datadir.Acquire(custody.SupervisorLock(string(c.folder)), holder)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, true, nil
	case err != nil || held: // by one that ends, or by the command that hands the folder over
		return false, false, err
	}
	c.lock = lock
	// The command that hands the folder over writes the keeper, and then waits for the lock.
	return c.hold()
}

// let ends that this program acts on the folder.
func (c *child) let() {
	if c.lock != nil {
		_ = c.lock.Release()
		c.lock = nil
	}
}

// forget makes the control plane one that this program does not keep. It stays one where it was asked for again meanwhile.
func (s *Supervisor) forget(c *child) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	other, err := s.otherKeeper(c.folder)
	if _, missing := os.Stat(string(c.folder)); err != nil || !other && missing == nil {
		return false
	}
	if s.children[c.name] == c {
		delete(s.children, c.name)
	}
	return true
}
