package cli

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/cluster"
	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

// createCommand returns the create command. It only groups a command of package cluster, as the other functions of this
// file group commands of packages cluster and provider. [verbs] lists them all.
func createCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a cluster",
	}
	cmd.AddCommand(cluster.CreateClusterCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// deleteCommand returns the delete command: a group with "delete cluster", which with flags deletes providers, as in
// clusterctl.
func deleteCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete a cluster or providers",
		Long: `Delete the providers that the flags select, as clusterctl does. The namespaces and CRDs of the
providers are preserved unless --include-namespace or --include-crd is set. If the command is
interrupted, run it again to delete the rest.`,
		Example: `  slipway delete cluster demo
  slipway delete --infrastructure aws
  slipway delete --all --include-crd --dry-run`,
	}
	cmd.AddCommand(cluster.DeleteClusterCommand(e))
	term.MarkGroup(cmd)
	provider.AddDeleteProvider(e, cmd) // wraps the RunE of MarkGroup, which prints the help without flags
	term.MarkRunnable(cmd)
	return cmd
}

// describeCommand returns the describe command.
func describeCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show the status of a cluster",
	}
	cmd.AddCommand(cluster.DescribeClusterCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// generateCommand returns the generate command.
func generateCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Generate manifests from templates",
	}
	cmd.AddCommand(cluster.GenerateClusterCommand(e), provider.GenerateProviderCommand(e), provider.GenerateYAMLCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// getCommand returns the get command.
func getCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List clusters, Machines, Nodes and ClusterClasses, or get a kubeconfig",
	}
	cmd.AddCommand(cluster.GetClassesCommand(e), cluster.GetClustersCommand(e), cluster.GetKubeconfigCommand(e), cluster.GetMachinesCommand(e), cluster.GetNodesCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// upgradeCommand returns the upgrade command.
func upgradeCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade a cluster or providers",
	}
	cmd.AddCommand(provider.UpgradeApplyCommand(e), cluster.UpgradeClusterCommand(e), provider.UpgradePlanCommand(e))
	term.MarkGroup(cmd)
	return cmd
}
