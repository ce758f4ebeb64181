package up

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// ManagerVerb is the hidden command that runs the manager. It receives [Instructions].
const ManagerVerb = "up-manager"

// Instructions describe the host and the management cluster to the manager's process. `slipway up` sends them as JSON
// on its standard input.
type Instructions struct {
	Dir        datadir.Dir `json:"dir"`
	Instance   string      `json:"instance"`
	Executable string      `json:"executable"`
	// FeatureGates lists feature gates to set, as "Name=true,Other=false"; empty: the defaults.
	FeatureGates string `json:"featureGates"`
	// Policy is the configuration of the operator.
	Policy policy.Configuration `json:"policy"`
}

// prepareFunc prepares a management cluster for the manager of these providers; root has full access. Package cli
// passes Prepare of package cli/manager, which imports this package. service.run calls it.
type prepareFunc func(ctx context.Context, root *rest.Config, sets []providerset.Set) error

// flags holds the flag values of `slipway up`. reportFD and supervise are hidden flags, which only flags.detached sets
// for the processes in the background.
type flags struct {
	dataDir       string
	listen        string
	gates         string
	without       []string
	node          nodeFlag
	detach        bool
	reportFD      int
	supervise     bool
	configuration provider.PolicyFlags
}

// Command returns the up command, for package cli. The command calls prepare before the manager starts.
func Command(e term.Env, prepare prepareFunc) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the management cluster and all controllers",
		Long: `Start the management cluster and all controllers, and run until interrupted. With -d, run in the
background and return when ready. A background process is restarted if it exits without being
stopped, for example when memory runs out. "slipway down" stops it in both cases.

The next start with the same data directory reuses the flags of the last start, unless you set them
again. With -d, it is not an error if the management cluster already runs.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), e, cmd.Flags(), prepare) },
	}
	term.AddDataDirFlag(cmd.Flags(), &f.dataDir)
	cmd.Flags().StringVar(&f.listen, "listen", controlplane.DefaultListen, "loopback ADDRESS:PORT of the API server; the webhooks and diagnostics of the manager use the next two ports, or other free ports if these are in use")
	cmd.Flags().StringVar(&f.gates, "feature-gates", "", "feature gates as NAME=true|false, separated by commas (default ClusterTopology=true,RuntimeSDK=true)")
	cmd.Flags().StringSliceVar(&f.without, "without", nil, "providers to disable in addition to the configuration file: "+providerset.List(providerset.Names()))
	cmd.Flags().BoolVarP(&f.detach, "detach", "d", false, "run in the background and return when ready")
	f.node.bind(cmd.Flags())
	f.configuration.Bind(cmd.Flags())
	cmd.Flags().IntVar(&f.reportFD, "report-fd", 0, "file descriptor to report progress to")
	cmd.Flags().BoolVar(&f.supervise, strings.TrimPrefix(superviseFlag, "--"), false, "restart the management cluster if it exits without being stopped")
	_ = cmd.Flags().MarkHidden("report-fd")
	_ = cmd.Flags().MarkHidden(strings.TrimPrefix(superviseFlag, "--"))
	return cmd
}

// run starts the supervisor, a background process or the management cluster, as the flags select. restoreFlags sets
// flags that the user did not set, so policy and CheckListen come after it.
func (f *flags) run(ctx context.Context, e term.Env, set *pflag.FlagSet, prepare prepareFunc) error {
	if f.configuration.Print {
		return f.configuration.PrintTo(e.Out)
	}
	dir, err := e.DataDir(f.dataDir)
	if err != nil {
		return err
	}
	if f.supervise {
		return supervise(ctx, e, dir, openReport(f.reportFD))
	}
	if err := checkNotManagerDir(dir); err != nil {
		return err
	}
	if f.detach {
		if done, err := isRunning(e, dir, set); done || err != nil {
			return err
		}
	}
	kept, err := restoreFlags(e.Err, dir, set)
	if err != nil {
		return err
	}
	allowed, err := f.policy()
	if err != nil {
		return err
	}
	if err := controlplane.CheckListen(f.listen); err != nil {
		return err
	}
	if space, err := datadir.SpaceOf(dir); err == nil { // a file system without this information has no limit
		if err := checkSpace(e.Err, dir, space); err != nil {
			return err
		}
	}
	if f.detach {
		err := f.detached(ctx, e, dir, set)
		if known := fault.As(err); known != nil && known.Reason == datadir.ReasonHeld {
			return waitForOtherStart(ctx, e, dir, set, err)
		}
		return err
	}
	s := service{dir: dir, listen: f.listen, gates: f.gates, prepare: prepare, policy: allowed, node: f.node, flags: kept}
	if f.reportFD > 0 {
		r := openReport(f.reportFD)
		s.newReporter = func(io.Writer) progressReporter { return r }
		return r.finish(s.serve(ctx, e))
	}
	began := e.Now()
	s.newReporter = func(w io.Writer) progressReporter { return terminalReporter{w: w, dir: dir, now: e.Now, began: began} }
	return s.serve(ctx, e)
}

// policy returns the operator's configuration without the providers that the flag disables. run calls it after
// restoreFlags.
func (f *flags) policy() (policy.Configuration, error) {
	allowed, err := f.configuration.Read()
	if err != nil {
		return allowed, err
	}
	without, err := provider.ParseProviders("--without", f.without)
	if err != nil {
		return allowed, err
	}
	allowed.Disable(without...)
	return allowed, nil
}

// progressReporter reports the progress of a start: to the terminal of a foreground process ([terminalReporter]), or
// through the pipe of a background process ([report]). service.run and managerRunner call it.
type progressReporter interface {
	step(step string)
	ready()
}

// terminalReporter reports the progress of a foreground process to the user.
type terminalReporter struct {
	w     io.Writer
	dir   datadir.Dir
	now   func() time.Time
	began time.Time
}

func (t terminalReporter) step(step string) { _, _ = fmt.Fprintln(t.w, step) }

func (t terminalReporter) ready() { welcome(t.w, t.dir, t.now().Sub(t.began)) }

// welcome prints the next steps. The process with the terminal calls it: a foreground process, or with -d the command
// that waited (detach.go).
func welcome(w io.Writer, dir datadir.Dir, took time.Duration) {
	suffix := ""
	if d, err := datadir.Default(noVariables); err != nil || d != dir {
		suffix = " --data-dir " + string(dir)
	}
	_, _ = fmt.Fprintf(w, `Ready after %s.

  export KUBECONFIG=%s
  slipway create cluster NAME    make a workload cluster
  slipway status%s
  slipway down%s
`, took.Round(10*time.Millisecond), dir.Kubeconfig(), suffix, suffix)
}

func noVariables(string) string { return "" }
