package provider

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
)

// Command returns the provider command.
func Command(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "Check releases of Cluster API providers",
	}
	cmd.AddCommand(lintCommand(e))
	term.Group(cmd)
	return cmd
}
