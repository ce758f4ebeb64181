package create

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/create/cluster"
	"github.com/slipwayhq/slipway/internal/cli/env"
)

// Command returns the create command.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create something",
	}
	cmd.AddCommand(cluster.Command(e))
	argument.Group(cmd)
	return cmd
}
