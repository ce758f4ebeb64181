package cli

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/cluster"
	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

// Command returns the generate command.
func Command(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Print manifests made from templates",
	}
	cmd.AddCommand(cluster.GenerateClusterCommand(e), provider.GenerateProviderCommand(e), provider.GenerateYAMLCommand(e))
	term.Group(cmd)
	return cmd
}
