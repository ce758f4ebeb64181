package upgrade

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/upgrade/cluster"
)

// Command builds the verb.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade something",
	}
	cmd.AddCommand(cluster.Command(e))
	argument.Group(cmd)
	return cmd
}
