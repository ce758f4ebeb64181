package move

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/etcd"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	// terminationGracePeriod is the termination grace period of a control plane that has to restart.
	terminationGracePeriod = 15 * time.Second
	// pollInterval is the polling interval for the release of a control plane by the source.
	pollInterval = 20 * time.Millisecond
)

// beforeWrite calls p.BeforeWrite, if set.
func (p *HostPair) beforeWrite() error {
	if p.BeforeWrite == nil {
		return nil
	}
	return p.BeforeWrite()
}

// Transfer transfers the ownership of a Cluster's resources on the host. Move.transferHostOwnership calls it for each
// Cluster in the phase deleting, after all objects exist at the target and before any is deleted at the source. It is
// idempotent. The order of its writes must not change, because an interrupted transfer continues from them (package
// documentation).
func (p *HostPair) Transfer(ctx context.Context, h ClusterResources) error {
	if err := p.beforeWrite(); err != nil {
		return err
	}
	if err := p.From.Store.BeginTransfer(h.Record); err != nil {
		return err
	}
	if err := p.transfer(ctx, h.Record, p.From, p.To); err != nil {
		return err
	}
	if err := p.beforeWrite(); err != nil {
		return err
	}
	return p.To.Store.RecordIncoming(h.Record)
}

// RollBack rolls back the transfers of the Clusters in the move. It is idempotent. Move.revert calls it.
func (p *HostPair) RollBack(ctx context.Context, what graph.Scope) error {
	return p.each(what, func(r hosttransfer.Record) error {
		if err := p.To.Store.CancelIncoming(r); err != nil {
			return err
		}
		if err := p.transfer(ctx, r, p.To, p.From); err != nil {
			return err
		}
		if err := p.beforeWrite(); err != nil {
			return err
		}
		return p.From.Store.CancelTransfer(r)
	})
}

// Commit records that the move of the Clusters is complete and can no longer be rolled back. Move.finish calls it.
func (p *HostPair) Commit(what graph.Scope) error { return p.each(what, p.From.Store.FinishTransfer) }

// each calls beforeWrite and do for every record of a transfer that belongs to the move.
func (p *HostPair) each(what graph.Scope, do func(hosttransfer.Record) error) error {
	records, err := p.From.Store.Outgoing()
	if err != nil {
		return err
	}
	for _, r := range records {
		if !r.InProgress || r.To != p.To.Store.Instance() || !isOf(what, r) {
			continue
		}
		if err := p.beforeWrite(); err != nil {
			return err
		}
		if err := do(r); err != nil {
			return err
		}
	}
	return nil
}

func isOf(what graph.Scope, r hosttransfer.Record) bool {
	_, name := filepath.Split(r.Cluster)
	return (what.Namespace == "" || what.Namespace == r.Namespace()) && (len(what.Clusters) == 0 || slices.Contains(what.Clusters, name))
}

// transfer moves the folders, for Transfer, and back for RollBack.
func (p *HostPair) transfer(ctx context.Context, r hosttransfer.Record, from, to HostDataDir) error {
	for _, name := range r.Planes {
		m := folderMove{from: filepath.Join(from.Dir.Planes(), name), to: filepath.Join(to.Dir.Planes(), name), newOwner: to.Store.Instance()}
		if err := p.movePlane(ctx, m); err != nil {
			return err
		}
	}
	for _, name := range r.Balancers { // the process is not affected, and other programs use the folder only when its Cluster is reconciled
		if err := p.moveFolder(filepath.Join(from.Dir.Balancers(), name), filepath.Join(to.Dir.Balancers(), name)); err != nil {
			return err
		}
	}
	for _, name := range r.Images { // read when a node is created
		if err := p.moveFolder(filepath.Join(from.Dir.Images(), name), filepath.Join(to.Dir.Images(), name)); err != nil {
			return err
		}
	}
	return nil
}

func (p *HostPair) moveFolder(from, to string) error {
	done, err := isFolderMoved(from, to)
	if err != nil || done {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return p.rename(from, to)
}

// folderMove is the move of a folder.
type folderMove struct{ from, to, newOwner string }

// isFolderMoved reports whether a folder has been moved. It also returns true if neither folder exists; the object then
// reports the missing data.
func isFolderMoved(from, to string) (bool, error) {
	_, here := os.Lstat(from)
	_, there := os.Lstat(to)
	switch {
	case errors.Is(here, os.ErrNotExist):
		return true, nil
	case here != nil:
		return false, here
	case there == nil:
		return false, fault.New(fault.Conflict, "FolderExists", "both %s and %s exist: move the one away that is not needed", from, to)
	case !errors.Is(there, os.ErrNotExist):
		return false, there
	}
	return false, nil
}

// movePlane moves the folder of a control plane after its supervisor has released it.
func (p *HostPair) movePlane(ctx context.Context, m folderMove) error {
	done, err := isFolderMoved(m.from, m.to)
	if err != nil {
		return err
	}
	if !done {
		if err := p.moveUnderLock(ctx, m); err != nil {
			return err
		}
	}
	if _, err := os.Stat(m.to); err != nil {
		return nil
	}
	if err := p.beforeWrite(); err != nil {
		return err
	}
	return hosttransfer.UnassignSupervisor(m.to)
}

// moveUnderLock ends the supervision and moves the folder while holding the supervisor's lock.
func (p *HostPair) moveUnderLock(ctx context.Context, m folderMove) error {
	if err := p.beforeWrite(); err != nil {
		return err
	}
	if err := hosttransfer.AssignSupervisor(m.from, m.newOwner); err != nil {
		return err
	}
	lock, err := p.awaitRelease(ctx, m.from)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	folder := processconfig.Folder(m.from)
	if run, alive, err := folder.ReadRun(); err != nil {
		return err
	} else if alive && !relocatable(run, m.to) {
		if err := supervisor.StopFolder(ctx, folder, terminationGracePeriod); err != nil {
			return err
		}
	}
	return p.rename(m.from, m.to)
}

// relocatable reports whether the process still finds its files, and clients its socket, after its folder has moved to
// place.
func relocatable(run processconfig.Run, place string) bool {
	return run.Relocatable && etcd.SocketInside(processconfig.Folder(place).Etcd())
}

func (p *HostPair) rename(from, to string) error {
	if err := p.beforeWrite(); err != nil {
		return err
	}
	err := datadir.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		return fault.New(fault.Invalid, "DifferentFileSystems", "%s and %s are on different file systems: folders cannot be handed over between them; begin the move again from or to a data directory on the same file system", from, to).From(err)
	}
	return err
}

// awaitRelease waits until no process supervises the control plane in a folder, and locks it.
func (p *HostPair) awaitRelease(ctx context.Context, folder string) (*datadir.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, p.ReleaseTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		lock, other, held, err := datadir.Acquire(hosttransfer.SupervisorLock(folder), datadir.CurrentProcess(time.Now()))
		if err != nil || !held {
			return lock, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fault.New(fault.Transient, "NotReleased", "process %d (slipway %s) does not let the control plane in %s go: see that it runs and is not stopped, then run the same command again", other.PID, other.Version, folder)
		}
	}
}
