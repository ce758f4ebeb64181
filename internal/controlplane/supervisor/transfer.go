package supervisor

import (
	"errors"
	"os"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonTransferred is the reason of the fault for a control plane that is transferred to another management cluster on
// this host. The value must stay (hack/names.txt).
const reasonTransferred = "HandedOver"

// BlockTransfer prevents `slipway move` from transferring a control plane to another management cluster until release
// is called. Ensure and Remove call it, and package hosted/process does before it writes files of the control plane. It
// returns a fault of kind Conflict if a transfer is in progress.
func (s *Supervisor) BlockTransfer(name string) (release func(), err error) {
	release, err = s.cfg.Transfers.BlockTransfers()
	if err != nil {
		return nil, err
	}
	if err := s.checkNotTransferred(name); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// checkNotTransferred returns a fault if another instance must supervise the control plane.
func (s *Supervisor) checkNotTransferred(name string) error {
	holdings, err := s.cfg.Transfers.Ownership()
	if err != nil {
		return err
	}
	_, giving := holdings.OutgoingTransfer(name)
	other, err := s.hasOtherSupervisor(s.Folder(name))
	if err != nil {
		return err
	}
	if giving || other {
		return fault.New(fault.Conflict, reasonTransferred, "Control plane %s is being transferred to another management cluster on this host: repeat the \"slipway move\" command, or add --rollback", name)
	}
	return nil
}

// hasOtherSupervisor reports whether another instance must supervise the control plane in a directory.
func (s *Supervisor) hasOtherSupervisor(f processconfig.Folder) (bool, error) {
	if s.cfg.Transfers == nil {
		return false, nil
	}
	keeper, err := hosttransfer.AssignedSupervisor(string(f))
	return keeper != "" && keeper != s.cfg.Transfers.Instance(), err
}

// acquireFolder reports whether this program may act on the directory: no other instance may be assigned to supervise
// it, or still supervise it. Each iteration of the loop calls it first. gone means that this program never may again,
// because the directory was transferred or deleted.
func (c *supervisionLoop) acquireFolder() (holds, gone bool, err error) {
	if c.s.cfg.Transfers == nil {
		return true, false, nil
	}
	other, err := c.s.hasOtherSupervisor(c.folder)
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
	lock, _, held, err := datadir.Acquire(hosttransfer.SupervisorLock(string(c.folder)), datadir.CurrentProcess(c.s.cfg.Now()))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, true, nil
	case err != nil || held: // a program that is stopping, or the command that transfers the directory, holds it
		return false, false, err
	}
	c.lock = lock
	// `slipway move` assigns the other supervisor before it waits for the lock, so the assignment is read again.
	return c.acquireFolder()
}

// releaseFolder releases the directory. The loop calls it when it ends, so that another instance can lock the
// directory.
func (c *supervisionLoop) releaseFolder() {
	if c.lock != nil {
		_ = c.lock.Release()
		c.lock = nil
	}
}

// forget removes a control plane from supervision if it was transferred or deleted. It returns false if it must still
// be supervised. The loop calls it when its directory is gone or has another supervisor.
func (s *Supervisor) forget(c *supervisionLoop) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	other, err := s.hasOtherSupervisor(c.folder)
	if _, missing := os.Stat(string(c.folder)); err != nil || !other && missing == nil {
		return false
	}
	if s.children[c.name] == c {
		delete(s.children, c.name)
	}
	return true
}
