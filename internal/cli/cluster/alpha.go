package cluster

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
)

// AlphaCommand returns the alpha command of clusterctl, for package cli. Restart, pause and resume below it are the
// same as below "slipway rollout".
func AlphaCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "alpha", Short: "Run the alpha commands of clusterctl"}
	cmd.AddCommand(alphaRolloutCommand(e), RemovedTopologyCommand())
	term.MarkGroup(cmd)
	return cmd
}

// RemovedTopologyCommand returns the command for "topology", which clusterctl has removed. It is available below alpha
// and at the top level.
func RemovedTopologyCommand() *cobra.Command {
	return term.RemovedCommand("topology", "clusterctl has removed \"alpha topology plan\": \"slipway plan -f FILE\" shows the effects of a change of a Cluster or ClusterClass")
}
