package delete

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/delete/cluster"
	"github.com/slipwayhq/slipway/internal/cli/env"
)

// Command builds the verb.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete something",
	}
	cmd.AddCommand(cluster.Command(e))
	argument.Group(cmd)
	return cmd
}
