// Package cli is the command line: one package per verb below it.
//
// Does: puts the verbs together, runs one, and maps its error to a message, a
// hint and an exit code in one place.
//
// Owns: the exit codes.
//
// Never: holds logic of a verb.
//
// Read first: Run.
package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/completion"
	"github.com/slipwayhq/slipway/internal/cli/controlplane"
	"github.com/slipwayhq/slipway/internal/cli/create"
	"github.com/slipwayhq/slipway/internal/cli/delete"
	"github.com/slipwayhq/slipway/internal/cli/describe"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/get"
	"github.com/slipwayhq/slipway/internal/cli/kubectl"
	"github.com/slipwayhq/slipway/internal/cli/plane"
	"github.com/slipwayhq/slipway/internal/cli/status"
	"github.com/slipwayhq/slipway/internal/cli/version"
)

// Run runs the command line args (without the program's name) and returns the
// exit code.
func Run(ctx context.Context, args []string, e env.Env) int {
	root := Root(e)
	root.SetArgs(args)
	return report(e.Err, root.ExecuteContext(ctx))
}

// Root builds the whole command tree.
func Root(e env.Env) *cobra.Command {
	root := &cobra.Command{
		Use:           "slipway",
		Short:         "Kubernetes clusters from one binary, with the Cluster API",
		SilenceErrors: true,
		SilenceUsage:  true,
		CompletionOptions: cobra.CompletionOptions{
			DisableDefaultCmd: true,
		},
	}
	root.SetIn(e.In)
	root.SetOut(e.Out)
	root.SetErr(e.Err)
	root.SetFlagErrorFunc(usageError)
	for _, verb := range verbs() {
		root.AddCommand(verb(e))
	}
	return root
}

func verbs() []func(env.Env) *cobra.Command {
	return []func(env.Env) *cobra.Command{
		completion.Command,
		controlplane.Command,
		create.Command,
		delete.Command,
		describe.Command,
		get.Command,
		kubectl.Command,
		plane.Command,
		status.Command,
		version.Command,
	}
}
