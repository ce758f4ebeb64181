package describe

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/describe/cluster"
	"github.com/slipwayhq/slipway/internal/cli/env"
)

// Command returns the describe command.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show the state of something",
	}
	cmd.AddCommand(cluster.Command(e))
	argument.Group(cmd)
	return cmd
}
