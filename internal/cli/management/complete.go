package management

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/term"
)

// completeWithin is the timeout of a shell completion.
const completeWithin = 2 * time.Second

// CompleteCluster completes the first argument with the names of the Clusters in the namespace. Commands with a CLUSTER
// argument use it for shell completion.
func (f *Flags) CompleteCluster(e term.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := f.Connect(e)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		var list clusterv1.ClusterList
		if err := c.Client.List(ctx, &list, client.InNamespace(c.Namespace)); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for _, cluster := range list.Items {
			names = append(names, cluster.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
