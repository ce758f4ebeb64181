// Package loadbalancer is the hidden verb "load-balancer": the process in front of the API servers of one workload cluster.
//
// Does: runs the load balancer that a folder describes, in the foreground.
//
// Never: is called by users; internal/balancer starts it.
//
// Read first: Command.
package loadbalancer

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/balancer"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/heap"
)

// Command builds the verb.
func Command(e env.Env) *cobra.Command {
	var folder string
	run := &cobra.Command{
		Use:   "run --folder DIR",
		Short: "Run the load balancer of one workload cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = heap.ResetVictim(heap.VictimControlPlane) // the manager's, which started this process, is higher
			return balancer.Work(cmd.Context(), balancer.Folder(folder), e.Now)
		},
	}
	run.Flags().StringVar(&folder, "folder", "", "folder of the load balancer")
	_ = run.MarkFlagRequired("folder")
	cmd := &cobra.Command{Use: "load-balancer", Short: "The process in front of the API servers of one workload cluster", Hidden: true}
	cmd.AddCommand(run)
	return cmd
}
