package cli

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/cluster"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

// getCommand returns the get command.
func getCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Get a kubeconfig, or what there is",
	}
	cmd.AddCommand(cluster.GetClassesCommand(e), cluster.GetClustersCommand(e), cluster.Command(e))
	term.Group(cmd)
	return cmd
}
