package hidden

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/local/loadbalancer"
)

// LoadBalancerCommand returns the hidden command "load-balancer run", the process of the load balancer of one workload
// cluster. The manager starts it (local/loadbalancer) with these arguments.
func LoadBalancerCommand(e term.Env) *cobra.Command {
	var folder string
	run := &cobra.Command{
		Use:   "run --folder DIR",
		Short: "Run the load balancer of one workload cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = heap.ResetOOMScore(heap.OOMScoreControlPlane) // the score of the parent process, the manager, is higher
			return loadbalancer.RunInFolder(cmd.Context(), loadbalancer.Folder(folder), e.Now)
		},
	}
	run.Flags().StringVar(&folder, "folder", "", "directory of the load balancer")
	_ = run.MarkFlagRequired("folder")
	cmd := &cobra.Command{Use: "load-balancer", Short: "Load balancer process of one workload cluster", Hidden: true}
	cmd.AddCommand(run)
	return cmd
}
