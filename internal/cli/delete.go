package cli

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/cluster"
	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

// deleteCommand returns the delete command.
func deleteCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete a cluster, or providers",
		Long: `Delete a cluster with the verb below, or providers with the flags, as clusterctl does. The namespaces and CRDs of
providers stay unless they are asked for. Interrupted at any point, the same command deletes what remains.`,
		Example: `  slipway delete cluster demo
  slipway delete --infrastructure aws
  slipway delete --all --include-crd --dry-run`,
	}
	cmd.AddCommand(cluster.DeleteClusterCommand(e))
	term.Group(cmd)
	provider.AddDeleteProvider(e, cmd)
	term.MarkRunnable(cmd)
	return cmd
}
