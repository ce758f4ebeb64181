package cli

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/cluster"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

// describeCommand returns the describe command.
func describeCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show the state of something",
	}
	cmd.AddCommand(cluster.DescribeClusterCommand(e))
	term.Group(cmd)
	return cmd
}
