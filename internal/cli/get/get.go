package get

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/get/classes"
	"github.com/slipwayhq/slipway/internal/cli/get/clusters"
	"github.com/slipwayhq/slipway/internal/cli/get/kubeconfig"
)

// Command returns the get command.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Get a kubeconfig, or what there is",
	}
	cmd.AddCommand(classes.Command(e), clusters.Command(e), kubeconfig.Command(e))
	argument.Group(cmd)
	return cmd
}
