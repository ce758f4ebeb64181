package provider

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/provider/lint"
)

// Command returns the provider command.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "Check releases of Cluster API providers",
	}
	cmd.AddCommand(lint.Command(e))
	argument.Group(cmd)
	return cmd
}
