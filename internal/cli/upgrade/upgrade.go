package upgrade

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/upgrade/apply"
	"github.com/slipwayhq/slipway/internal/cli/upgrade/cluster"
	"github.com/slipwayhq/slipway/internal/cli/upgrade/plan"
)

// Command returns the upgrade command.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade providers, or a cluster",
	}
	cmd.AddCommand(apply.Command(e), cluster.Command(e), plan.Command(e))
	argument.Group(cmd)
	return cmd
}
