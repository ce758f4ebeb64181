package cli

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/cluster"
	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

// createCommand returns the create command.
func createCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create something",
	}
	cmd.AddCommand(cluster.CreateClusterCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

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
	term.MarkGroup(cmd)
	provider.AddDeleteProvider(e, cmd)
	term.MarkRunnable(cmd)
	return cmd
}

// describeCommand returns the describe command.
func describeCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show the state of something",
	}
	cmd.AddCommand(cluster.DescribeClusterCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// GenerateCommand returns the generate command.
func GenerateCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Print manifests made from templates",
	}
	cmd.AddCommand(cluster.GenerateClusterCommand(e), provider.GenerateProviderCommand(e), provider.GenerateYAMLCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// getCommand returns the get command.
func getCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Get a kubeconfig, or what there is",
	}
	cmd.AddCommand(cluster.GetClassesCommand(e), cluster.GetClustersCommand(e), cluster.GetKubeconfigCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// upgradeCommand returns the upgrade command.
func upgradeCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade providers, or a cluster",
	}
	cmd.AddCommand(provider.UpgradeApplyCommand(e), cluster.UpgradeClusterCommand(e), provider.UpgradePlanCommand(e))
	term.MarkGroup(cmd)
	return cmd
}
