package delete

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/delete/cluster"
	"github.com/slipwayhq/slipway/internal/cli/delete/provider"
	"github.com/slipwayhq/slipway/internal/cli/env"
)

// Command returns the delete command.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete a cluster, or providers",
		Long: `Delete a cluster with the verb below, or providers with the flags, as clusterctl does. The namespaces and CRDs of
providers stay unless they are asked for. Interrupted at any point, the same command deletes what remains.`,
		Example: `  slipway delete cluster demo
  slipway delete --infrastructure aws
  slipway delete --all --include-crd --dry-run`,
	}
	cmd.AddCommand(cluster.Command(e))
	argument.Group(cmd)
	provider.Add(e, cmd)
	argument.MarkRunnable(cmd)
	return cmd
}
