// Package cli implements the slipway command line, with one package per command below it. It assembles the commands,
// runs one, and maps its error to a message, a hint and an exit code. The logic of the commands is in their packages.
// Start with [Run].
package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/alpha"
	"github.com/slipwayhq/slipway/internal/cli/backup"
	"github.com/slipwayhq/slipway/internal/cli/completion"
	"github.com/slipwayhq/slipway/internal/cli/config"
	"github.com/slipwayhq/slipway/internal/cli/controlplane"
	"github.com/slipwayhq/slipway/internal/cli/convert"
	"github.com/slipwayhq/slipway/internal/cli/create"
	"github.com/slipwayhq/slipway/internal/cli/delete"
	"github.com/slipwayhq/slipway/internal/cli/describe"
	"github.com/slipwayhq/slipway/internal/cli/down"
	"github.com/slipwayhq/slipway/internal/cli/encryption"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/etcddata"
	"github.com/slipwayhq/slipway/internal/cli/explain"
	"github.com/slipwayhq/slipway/internal/cli/extension"
	"github.com/slipwayhq/slipway/internal/cli/generate"
	"github.com/slipwayhq/slipway/internal/cli/get"
	"github.com/slipwayhq/slipway/internal/cli/image"
	"github.com/slipwayhq/slipway/internal/cli/initialize"
	"github.com/slipwayhq/slipway/internal/cli/kubectl"
	"github.com/slipwayhq/slipway/internal/cli/loadbalancer"
	"github.com/slipwayhq/slipway/internal/cli/logs"
	"github.com/slipwayhq/slipway/internal/cli/manager"
	"github.com/slipwayhq/slipway/internal/cli/move"
	"github.com/slipwayhq/slipway/internal/cli/plan"
	"github.com/slipwayhq/slipway/internal/cli/plane"
	"github.com/slipwayhq/slipway/internal/cli/plugin"
	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/cli/recovery"
	"github.com/slipwayhq/slipway/internal/cli/restore"
	"github.com/slipwayhq/slipway/internal/cli/rollout"
	"github.com/slipwayhq/slipway/internal/cli/rotate"
	"github.com/slipwayhq/slipway/internal/cli/snapshots"
	"github.com/slipwayhq/slipway/internal/cli/status"
	"github.com/slipwayhq/slipway/internal/cli/up"
	"github.com/slipwayhq/slipway/internal/cli/upgrade"
	"github.com/slipwayhq/slipway/internal/cli/version"
	"github.com/slipwayhq/slipway/internal/cli/versions"
	"github.com/slipwayhq/slipway/internal/cli/wait"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/custody"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/providers/local/backend/container"
)

// Run runs the command line args (without the program name) and returns the exit code.
func Run(ctx context.Context, args []string, e env.Env) int {
	root, plugins := Root(e), []string{"slipway", env.Clusterctl}
	if e.Program == env.Clusterctl {
		root, plugins = Clusterctl(e), []string{env.Clusterctl}
	}
	if err := plugin.Run(root, args, plugins); err != nil {
		return report(e.Err, root.Name(), err)
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && strings.HasPrefix(err.Error(), "unknown command ") {
		if e.Program == env.Clusterctl {
			err = unknownVerb(e, args, err)
		}
		if fault.As(err) == nil {
			err = usageError(root, err)
		}
	}
	return report(e.Err, root.Name(), err)
}

// Root returns the root command with all commands.
func Root(e env.Env) *cobra.Command {
	root := base(e)
	for _, verb := range verbs() {
		root.AddCommand(verb(e))
	}
	acceptFlags(root)
	return root
}

// base returns a root command without subcommands.
func base(e env.Env) *cobra.Command {
	root := &cobra.Command{
		Use:           "slipway",
		Short:         "Kubernetes clusters from one binary, with the Cluster API",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       buildinfo.Version(),
		CompletionOptions: cobra.CompletionOptions{
			DisableDefaultCmd: true,
		},
	}
	// This flag replaces the flag of the same name that Kubernetes' libraries add to every command.
	root.PersistentFlags().Bool("version", false, "print the version of slipway")
	_ = root.PersistentFlags().MarkHidden("version")
	root.SetIn(e.In)
	root.SetOut(e.Out)
	root.SetErr(e.Err)
	root.SetFlagErrorFunc(usageError)
	return root
}

func verbs() []func(env.Env) *cobra.Command {
	return []func(env.Env) *cobra.Command{
		alpha.Command,
		func(env.Env) *cobra.Command { return alpha.Topology() },
		backup.Command,
		completion.Command,
		config.Command,
		controlplane.Command,
		convert.Command,
		create.Command,
		delete.Command,
		describe.Command,
		func(e env.Env) *cobra.Command { return down.Command(e, removeInstance) },
		encryption.Command,
		etcddata.Command,
		explain.Command,
		extension.Command,
		generate.Command,
		get.Command,
		image.Command,
		initialize.Command,
		kubectl.Command,
		loadbalancer.Command,
		logs.Command,
		manager.Command,
		manager.EmbeddedCommand,
		move.Command,
		plan.Command,
		plane.Command,
		provider.Command,
		recovery.Command,
		restore.Command,
		rollout.Command,
		rotate.Command,
		snapshots.Command,
		status.Command,
		func(e env.Env) *cobra.Command { return up.Command(e, manager.Prepare) },
		upgrade.Command,
		version.Command,
		versions.Command,
		wait.Command,
	}
}

// removeInstance removes the containers and networks of an instance.
func removeInstance(ctx context.Context, dir, instance string, tell func(gone, of int)) error {
	return container.RemoveInstance(ctx, custody.Open(datadir.Dir(dir), instance), tell)
}
