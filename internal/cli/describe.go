package cli

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/cluster"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

// DescribeCommand returns the describe command.
func DescribeCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show the state of something",
	}
	cmd.AddCommand(cluster.DescribeClusterCommand(e))
	term.Group(cmd)
	return cmd
}
