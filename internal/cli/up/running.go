package up

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// checkNotManagerDir rejects the directory of a "slipway manager", because its resources on this host would get a
// second management cluster. `slipway up` calls it first.
func checkNotManagerDir(dir datadir.Dir) error {
	state, err := datadir.Inspect(dir)
	if err != nil || state.Holder.ManagerOf == "" {
		return err
	}
	if _, err := os.Stat(dir.Etcd()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return fault.New(fault.Invalid, "ManagersDirectory", "data directory %s belongs to a manager of %s; choose another --data-dir, start that manager (%s), or delete its resources on this host: slipway down --delete --data-dir %s",
		dir, state.Holder.ManagerOf, cmp.Or(state.Holder.Command, "slipway manager"), dir)
}

// startPoll is the interval of checks for a start by another command.
const startPoll = 200 * time.Millisecond

// waitForOtherStart waits for a management cluster that another command is starting, after `slipway up -d` failed
// because the directory is in use. If the holder of the directory does not start one, it returns the error held. There
// is no timeout, because a slow host may need any amount of time.
func waitForOtherStart(ctx context.Context, e term.Env, dir datadir.Dir, set *pflag.FlagSet, held error) error {
	told := false
	for {
		state, err := datadir.Inspect(dir)
		switch {
		case err != nil:
			return err
		case !state.Held && state.Supervision == nil || state.Holder.ManagerOf != "":
			return held
		case state.Run != nil && state.Run.Ready:
			_, err := isRunning(e, dir, set)
			return err
		case !told:
			told = true
			_, _ = fmt.Fprintf(e.Err, "Another command is starting the management cluster (process %d); waiting until it is ready …\n", holderOf(state))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(startPoll):
		}
	}
}

// holderOf returns the process that is starting a management cluster, or its supervisor.
func holderOf(state datadir.State) int {
	if !state.Held && state.Supervision != nil {
		return state.Supervision.PID
	}
	return state.Holder.PID
}

// isRunning reports whether a management cluster is running in dir. Flags with other values than in the running process
// are an error, because they would have no effect. flags.run calls it for `slipway up -d`, before anything is started.
func isRunning(e term.Env, dir datadir.Dir, set *pflag.FlagSet) (bool, error) {
	state, err := datadir.Inspect(dir)
	if err != nil || state.Run == nil || !state.Run.Ready {
		return false, err
	}
	running, err := datadir.ReadFlags(dir)
	if err != nil {
		return false, err
	}
	other := map[string]bool{}
	for _, name := range savedFlags {
		flag := set.Lookup(name)
		text, err := textOf(flag)
		if err != nil {
			return false, err
		}
		runs, ok := running[name]
		if !ok {
			runs = defaultOf(flag)
		}
		if isGiven(flag) && text != runs {
			other["--"+name] = true
		}
	}
	if node := set.Lookup("node"); node.Changed && (node.Value.String() == "true") != (state.Run.Node != nil) {
		other["--node"] = true
	}
	if len(other) > 0 {
		return false, fault.New(fault.Invalid, "RunsWithOtherFlags", "the management cluster runs already (process %d) with another %s: run \"slipway down\" first",
			state.Run.PID, strings.Join(slices.Sorted(maps.Keys(other)), " and "))
	}
	read := ""
	if isGiven(set.Lookup("config")) {
		read = " It read its configuration file when it started; \"slipway down\", then \"slipway up\" reads it again."
	}
	_, err = fmt.Fprintf(e.Err, "Runs already (process %d, %s).%s\n", state.Run.PID, state.Run.Server, read)
	return true, err
}
