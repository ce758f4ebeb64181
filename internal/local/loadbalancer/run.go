package loadbalancer

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/listeners"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

// readEvery is the interval at which a process reads its configuration.
const readEvery = 200 * time.Millisecond

// RunInFolder is the main function of a load balancer process, which the [Supervisor] starts as the hidden command
// `slipway load-balancer run`. It calls [runReportingFailure] in a directory that may be renamed while it runs, by
// making it the working directory of this process.
func RunInFolder(ctx context.Context, f Folder, now func() time.Time) error {
	if err := os.Chdir(string(f)); err != nil {
		return err
	}
	return runReportingFailure(ctx, workingDirectory, now)
}

// runReportingFailure serves the configuration in the directory until the context ends, and writes the reason to the
// state file if it fails. If another process already serves the directory, it returns without an error.
func runReportingFailure(ctx context.Context, f Folder, now func() time.Time) error {
	err := serveFolder(ctx, f, now)
	if err != nil {
		_ = datadir.WriteJSON(f.state(), State{Failure: fault.UserMessage(err)}) // the log contains it, too
	}
	return err
}

func serveFolder(ctx context.Context, f Folder, now func() time.Time) error {
	lock, other, held, err := datadir.Acquire(f.Lock(), datadir.CurrentProcess(now()))
	if err != nil {
		return err
	}
	if held {
		slog.Info("another process already serves this directory", "pid", other.PID)
		return nil
	}
	defer func() { _ = lock.Release() }()
	cfg, err := f.Load()
	if err != nil {
		return err
	}
	if err := cfg.validate(); err != nil {
		return err
	}
	l, err := listeners.Freebind(ctx, cfg.Listen.String())
	if err != nil {
		return fault.New(fault.Unreachable, "AddressNotFree",
			"the load balancer cannot listen at %s: end the program that does, or create the cluster with an endpoint of another port", cfg.Listen).From(err)
	}
	go childproc.WatchLog(ctx, f.Log())
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	b := newBalancer(now)
	b.Set(cfg.Members)
	slog.Info("serving", "address", cfg.Listen, "members", len(cfg.Members))
	go func() { stop(b.follow(ctx, f, cfg)) }()
	err = b.Serve(ctx, l)
	if cause := context.Cause(ctx); err == nil && cause != context.Canceled && cause != context.DeadlineExceeded {
		err = cause
	}
	return err
}

// follow reads the members periodically and writes the health of the members. It returns an error when the directory is
// deleted, because nothing else would stop the process then.
func (b *balancer) follow(ctx context.Context, f Folder, before Config) error {
	said := State{}
	for pause.Sleep(ctx, readEvery) == nil {
		if !f.exists() {
			return fmt.Errorf("the directory of the load balancer was deleted")
		}
		now, err := f.Load()
		switch {
		case err != nil: // the file is written atomically, so the error is temporary, or the file was edited by hand
			slog.Warn("reading the members failed, using the previous ones", "error", err)
			continue
		case now.Listen != before.Listen:
			return fmt.Errorf("the address is to be %s instead of %s", now.Listen, before.Listen)
		case !reflect.DeepEqual(now, before):
			slog.Info("members changed", "members", now.Members)
			b.Set(now.Members)
			before = now
		}
		if state := b.State(); !reflect.DeepEqual(state, said) {
			if err := datadir.WriteJSON(f.state(), state); err != nil {
				slog.Warn("writing the health of the members failed", "error", err)
				continue
			}
			said = state
		}
	}
	return nil
}
