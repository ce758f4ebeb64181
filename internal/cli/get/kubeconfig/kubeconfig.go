package kubeconfig

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/clusterctl/kubeconfig"
)

// Command builds the verb.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubeconfig CLUSTER",
		Short: "Print the kubeconfig of a workload cluster",
		Long: `Print the kubeconfig of a workload cluster. With --merge, it is added to the kubeconfig of kubectl instead (the first file
of $KUBECONFIG, or ~/.kube/config) as context slipway-CLUSTER, in other namespaces than "default"
slipway-NAMESPACE-CLUSTER, and that context becomes the current one. Other contexts stay as they are.`,
		Example: `  slipway get kubeconfig demo > demo.kubeconfig
  slipway kubectl --kubeconfig demo.kubeconfig get nodes
  slipway get kubeconfig demo --merge`,
		Args: argument.One("CLUSTER"),
	}
	flags := management.Add(cmd.Flags())
	into := cmd.Flags().Bool("merge", false, "add it to the kubeconfig of kubectl and make it the current context, instead of printing it")
	cmd.ValidArgsFunction = flags.CompleteCluster(e)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := flags.Connect(e)
		if err != nil {
			return err
		}
		data, err := kubeconfig.Read(cmd.Context(), c.Client, client.ObjectKey{Namespace: c.Namespace, Name: args[0]})
		if err != nil {
			return c.Explain(err)
		}
		if *into {
			return merge(e, flags, contextName(c.Namespace, args[0]), data)
		}
		_, err = e.Out.Write(data)
		return err
	}
	return cmd
}
