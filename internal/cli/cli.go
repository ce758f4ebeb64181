package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/cluster"
	"github.com/slipwayhq/slipway/internal/cli/data"
	"github.com/slipwayhq/slipway/internal/cli/extension"
	"github.com/slipwayhq/slipway/internal/cli/hidden"
	"github.com/slipwayhq/slipway/internal/cli/hosts"
	"github.com/slipwayhq/slipway/internal/cli/image"
	"github.com/slipwayhq/slipway/internal/cli/manager"
	"github.com/slipwayhq/slipway/internal/cli/plan"
	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/cli/up"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/container"
)

// Run runs the command line args (without the program name) and returns the exit code. The main function calls it. If
// the program is called as clusterctl (by a symbolic link), it has only the commands of clusterctl.
func Run(ctx context.Context, args []string, e term.Env) int {
	root, plugins := newSlipwayRoot(e), []string{"slipway", term.Clusterctl}
	if e.Program == term.Clusterctl {
		root, plugins = newClusterctlRoot(e), []string{term.Clusterctl}
	}
	if err := runPlugin(root, args, plugins); err != nil {
		return report(e.Err, root.Name(), err)
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && strings.HasPrefix(err.Error(), "unknown command ") {
		if e.Program == term.Clusterctl {
			err = unknownVerb(e, args, err)
		}
		if fault.As(err) == nil {
			err = usageError(root, err)
		}
	}
	return report(e.Err, root.Name(), err)
}

// newSlipwayRoot returns the root command with all commands. [Run] calls it; unknownVerb also searches its commands.
func newSlipwayRoot(e term.Env) *cobra.Command {
	root := newRoot(e)
	for _, verb := range verbs() {
		root.AddCommand(verb(e))
	}
	acceptFlags(root)
	return root
}

// newRoot returns a root command without subcommands.
func newRoot(e term.Env) *cobra.Command {
	root := &cobra.Command{
		Use:           "slipway",
		Short:         "Run and manage Kubernetes clusters with Cluster API",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       buildinfo.Version(),
		CompletionOptions: cobra.CompletionOptions{
			DisableDefaultCmd: true,
		},
	}
	// This flag replaces the flag of the same name that Kubernetes' libraries add to every command.
	root.PersistentFlags().Bool("version", false, "print the version of Slipway")
	_ = root.PersistentFlags().MarkHidden("version")
	// Commands with mutually exclusive flags have merged the flag of the libraries already, so that one is hidden as
	// well.
	_ = pflag.CommandLine.MarkHidden("version")
	root.SetIn(e.In)
	root.SetOut(e.Out)
	root.SetErr(e.Err)
	root.SetFlagErrorFunc(usageError)
	return root
}

// verbs returns the constructors of all top-level commands. A new command is added here; docs/cli.md contains its help
// and is generated (document.go).
func verbs() []func(term.Env) *cobra.Command {
	return []func(term.Env) *cobra.Command{
		cluster.AlphaCommand,
		func(term.Env) *cobra.Command { return cluster.RemovedTopologyCommand() },
		data.BackupCommand,
		hosts.BundleCommand,
		completionCommand,
		provider.ConfigCommand,
		hidden.ControlPlaneCommand,
		provider.ConvertCommand,
		createCommand,
		deleteCommand,
		describeCommand,
		docsCommand,
		func(e term.Env) *cobra.Command { return up.DownCommand(e, removeInstance) },
		cluster.EncryptionCommand,
		data.EtcdDataCommand,
		plan.ExplainCommand,
		extension.Command,
		generateCommand,
		getCommand,
		hosts.Command,
		image.Command,
		provider.InitCommand,
		cluster.KubectlCommand,
		hidden.LoadBalancerCommand,
		cluster.LogsCommand,
		manager.Command,
		manager.EmbeddedCommand,
		data.MoveCommand,
		plan.Command,
		hidden.PlaneCommand,
		provider.Command,
		data.RecoverCommand,
		data.RestoreCommand,
		cluster.RolloutCommand,
		cluster.RotateCommand,
		data.SnapshotsCommand,
		up.StatusCommand,
		plan.UICommand,
		func(e term.Env) *cobra.Command { return up.Command(e, manager.Prepare) },
		upgradeCommand,
		versionCommand,
		image.VersionsCommand,
		cluster.WaitCommand,
	}
}

// removeInstance removes the containers and networks of an instance, for `slipway down --delete`. The instance is the
// ID of a data directory, by which its Docker resources are found.
func removeInstance(ctx context.Context, dir, instance string, tell func(gone, of int)) error {
	return container.RemoveInstance(ctx, hosttransfer.Open(datadir.Dir(dir), instance), tell)
}
