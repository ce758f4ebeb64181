// Package down is the verb "down".
//
// Does: stops the management cluster, every hosted control plane and every load balancer, also those
// whose slipway was killed; with --delete it also removes what workload clusters
// left on this machine, then the data directory.
//
// Owns: the removal of the data directory.
//
// Never: knows what a workload cluster is made of; Env.Delete does.
//
// Read first: Command.
package down

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/balancer"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/process"
)

// patience is how long the management cluster may take to end before it is killed: on a busy host, etcd and the hosted control planes take long.
const patience = 90 * time.Second

// Delete removes everything outside the data directory that belongs to the
// instance: containers, networks. Nothing left is no error. It tells how many
// of how many are gone, from one goroutine at a time.
type Delete func(ctx context.Context, dataDir, instance string, tell func(gone, of int)) error

type flags struct {
	dataDir string
	delete  bool
}

// Command builds the verb; remove is called by --delete.
func Command(e env.Env, remove Delete) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the management cluster and the hosted control planes",
		Long: "Stop the management cluster and the hosted control planes. Data stays: \"slipway up\" continues.\n" +
			"With --delete, workload clusters' processes, containers and networks are removed, then the data.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), e, remove) },
	}
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "data directory (default $XDG_DATA_HOME/slipway or ~/.local/share/slipway)")
	cmd.Flags().BoolVar(&f.delete, "delete", false, "also delete workload clusters and all data")
	return cmd
}

func (f flags) run(ctx context.Context, e env.Env, remove Delete) error {
	dir, err := e.DataDir(f.dataDir)
	if err != nil {
		return err
	}
	state, err := datadir.Inspect(dir)
	if err != nil {
		return err
	}
	if !state.Exists && !state.Held {
		_, err := fmt.Fprintf(e.Err, "Nothing to stop: %s is not a data directory of slipway.\n", dir)
		return err
	}
	if isManager(state) {
		if err := f.checkLeft(ctx, e, state); err != nil {
			return err
		}
	}
	if err := stop(ctx, e, dir, state); err != nil {
		return err
	}
	if !f.delete {
		at := ""
		if usual, err := e.DataDir(""); err != nil || usual != dir {
			at = " --data-dir " + string(dir)
		}
		continues := "slipway up" + at
		if isManager(state) {
			continues = cmp.Or(state.Holder.Command, "slipway manager")
		}
		_, _ = fmt.Fprintf(e.Err, "Stopped. Data is kept in %s; \"%s\" continues, \"slipway down --delete%s\" removes it.\n", dir, continues, at)
		planes, err := process.Inspect(dir.Planes())
		if len(planes) > 0 {
			_, _ = fmt.Fprintln(e.Err, "Hosted control planes are stopped, too. Nodes in containers keep running with their Pods.")
		}
		return err
	}
	return deleteAll(ctx, e, dir, remove)
}

// isManager reports whether the directory is that of a manager of another cluster: its holder is one, or was the last that held it.
func isManager(state datadir.State) bool { return state.Holder.ManagerOf != "" }

// stop is safe to repeat: the next slipway process can take the directory when
// it returns.
func stop(ctx context.Context, e env.Env, dir datadir.Dir, state datadir.State) error {
	what := "management cluster"
	if isManager(state) {
		what = "manager"
	}
	switch {
	case state.Held:
		_, _ = fmt.Fprintf(e.Err, "Stopping the %s (process %d) …\n", what, state.Holder.PID)
	case state.Supervision != nil:
		_, _ = fmt.Fprintf(e.Err, "Stopping the supervisor of the %s (process %d) …\n", what, state.Supervision.PID)
	}
	// Its supervisor stops it, and would otherwise start it again.
	if _, err := process.Terminate(ctx, dir.SupervisorLock(), patience); err != nil {
		return fmt.Errorf("stop the supervisor of the %s: %w", what, err)
	}
	if _, err := process.Terminate(ctx, dir.Lock(), patience); err != nil {
		return fmt.Errorf("stop the %s: %w", what, err)
	}
	return errors.Join(process.StopAll(ctx, dir.Planes()), balancer.StopAll(ctx, dir.Balancers()))
}

func deleteAll(ctx context.Context, e env.Env, dir datadir.Dir, remove Delete) error {
	state, err := datadir.Inspect(dir)
	if err != nil {
		return err
	}
	holder := state.Holder // whose directory it is stays known until it is gone
	holder.PID, holder.Since, holder.Working = os.Getpid(), e.Now(), false
	holder.Host, _ = os.Hostname()
	h, err := datadir.Open(dir, holder)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	_, _ = fmt.Fprintln(e.Err, "Removing the hosted control planes, containers and networks that were made from here, if there are any …")
	if err := remove(ctx, string(dir), h.Instance, progress(e)); err != nil && !pointless(dir, err) {
		return fault.New(fault.KindOf(err), "DeleteWorkloadClusters",
			"workload clusters of instance %s could not be removed (%s); the data in %s is kept: make this work, then run the command again",
			h.Instance, fault.UserMessage(err), dir).From(err)
	}
	left, err := h.Remove()
	if err != nil {
		return fmt.Errorf("delete %s: %w", dir, err)
	}
	if len(left) > 0 {
		_, err = fmt.Fprintf(e.Err, "Deleted what is slipway's in %s; kept the rest: %s.\n", dir, strings.Join(left, ", "))
		return err
	}
	_, err = fmt.Fprintf(e.Err, "Deleted %s.\n", dir)
	return err
}

// progress prints how far the deletion is, every second and at its end.
func progress(e env.Env) func(gone, of int) {
	last := e.Now()
	return func(gone, of int) {
		if now := e.Now(); gone == of || now.Sub(last) >= time.Second {
			last = now
			_, _ = fmt.Fprintf(e.Err, "  removed %d of %d containers, volumes and networks\n", gone, of)
		}
	}
}

// pointless tells that an error does not matter, because the instance never
// had a workload cluster and Docker, which does not answer, may never have been
// there.
func pointless(dir datadir.Dir, err error) bool {
	planes, inspect := process.Inspect(dir.Planes())
	return fault.KindOf(err) == fault.Unreachable && inspect == nil && len(planes) == 0
}
