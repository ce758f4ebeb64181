package cli

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/cluster"
	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

// upgradeCommand returns the upgrade command.
func upgradeCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade providers, or a cluster",
	}
	cmd.AddCommand(provider.UpgradeApplyCommand(e), cluster.UpgradeClusterCommand(e), provider.UpgradePlanCommand(e))
	term.Group(cmd)
	return cmd
}
