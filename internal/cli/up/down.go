package up

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/loadbalancer"
)

// stopTimeout is how long the management cluster may take to stop before it is killed. On a busy host, etcd and the
// hosted control planes stop slowly.
const stopTimeout = 90 * time.Second

// Delete removes everything outside the data directory that belongs to the instance: containers, volumes and networks.
// It succeeds if nothing is left. It reports the progress with calls of tell, which are never concurrent. [DownCommand]
// receives it from package cli, which passes removeInstance.
type Delete func(ctx context.Context, dataDir, instance string, tell func(gone, of int)) error

// downFlags holds the flag values of `slipway down`.
type downFlags struct {
	dataDir string
	delete  bool
}

// DownCommand returns the down command, for package cli; --delete calls remove.
func DownCommand(e term.Env, remove Delete) *cobra.Command {
	var f downFlags
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the management cluster and the hosted control planes",
		Long: `Stop the management cluster and the hosted control planes. All data is preserved, and "slipway up"
continues with it. With --delete, the processes, containers and networks of the workload clusters
are removed, then all data.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), e, remove) },
	}
	term.AddDataDirFlag(cmd.Flags(), &f.dataDir)
	cmd.Flags().BoolVar(&f.delete, "delete", false, "also delete workload clusters and all data")
	return cmd
}

func (f downFlags) run(ctx context.Context, e term.Env, remove Delete) error {
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
		if err := f.checkRemaining(ctx, e, state); err != nil {
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
		_, _ = fmt.Fprintf(e.Err, "Stopped. The data in %s is retained; \"%s\" continues, \"slipway down --delete%s\" removes it.\n", dir, continues, at)
		planes, err := supervisor.Inspect(dir.Planes())
		if len(planes) > 0 {
			_, _ = fmt.Fprintln(e.Err, "Hosted control planes are stopped, too. Nodes in containers keep running with their Pods.")
		}
		return err
	}
	return deleteAll(ctx, e, dir, remove)
}

// isManager reports whether the current or last process that held the directory is a manager of another cluster.
func isManager(state datadir.State) bool { return state.Holder.ManagerOf != "" }

// stop stops the supervisor, the process that holds the directory, the hosted control planes and the load balancers. It
// is idempotent. When it returns, another slipway process can use the directory.
func stop(ctx context.Context, e term.Env, dir datadir.Dir, state datadir.State) error {
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
	// Stop the supervisor first, because it would restart the process.
	if _, err := childproc.Terminate(ctx, dir.SupervisorLock(), stopTimeout); err != nil {
		return fmt.Errorf("stop the supervisor of the %s: %w", what, err)
	}
	if _, err := childproc.Terminate(ctx, dir.Lock(), stopTimeout); err != nil {
		return fmt.Errorf("stop the %s: %w", what, err)
	}
	return errors.Join(supervisor.StopAll(ctx, dir.Planes()), loadbalancer.StopAll(ctx, dir.Balancers()))
}

// deleteAll removes the resources of the directory, then the directory. It holds the lock meanwhile, so that no start
// interferes.
func deleteAll(ctx context.Context, e term.Env, dir datadir.Dir, remove Delete) error {
	state, err := datadir.Inspect(dir)
	if err != nil {
		return err
	}
	holder := state.Holder // preserves the information about the directory until it is deleted
	holder.PID, holder.Since, holder.Working = os.Getpid(), e.Now(), false
	holder.Host, _ = os.Hostname()
	h, err := datadir.Open(dir, holder)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	_, _ = fmt.Fprintln(e.Err, "Removing the hosted control planes, containers and networks of this data directory …")
	if err := remove(ctx, string(dir), h.Instance, deletionProgress(e)); err != nil && !isIgnorable(dir, err) {
		return fault.New(fault.KindOf(err), "DeleteWorkloadClusters",
			"workload clusters of instance %s could not be removed (%s); the data in %s is retained: correct the problem and run the command again",
			h.Instance, fault.UserMessage(err), dir).From(err)
	}
	left, err := h.Remove()
	if err != nil {
		return fmt.Errorf("delete %s: %w", dir, err)
	}
	if len(left) > 0 {
		_, err = fmt.Fprintf(e.Err, "Deleted the files of slipway in %s; other files remain: %s.\n", dir, strings.Join(left, ", "))
		return err
	}
	_, err = fmt.Fprintf(e.Err, "Deleted %s.\n", dir)
	return err
}

// deletionProgress prints the progress of the deletion, every second and at the end.
func deletionProgress(e term.Env) func(gone, of int) {
	last := e.Now()
	return func(gone, of int) {
		if now := e.Now(); gone == of || now.Sub(last) >= time.Second {
			last = now
			_, _ = fmt.Fprintf(e.Err, "  removed %d of %d containers, volumes and networks\n", gone, of)
		}
	}
}

// isIgnorable reports whether an error can be ignored because the instance never had a workload cluster and Docker is
// unreachable or was never installed.
func isIgnorable(dir datadir.Dir, err error) bool {
	planes, inspect := supervisor.Inspect(dir.Planes())
	return fault.KindOf(err) == fault.Unreachable && inspect == nil && len(planes) == 0
}
