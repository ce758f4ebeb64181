package cli

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/cluster"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

// createCommand returns the create command.
func createCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create something",
	}
	cmd.AddCommand(cluster.CreateClusterCommand(e))
	term.Group(cmd)
	return cmd
}
