// Package alpha implements the alpha command with the subcommands of clusterctl, including removed ones.
package alpha

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/rollout"
)

// Command returns the alpha command.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "alpha", Short: "Verbs that clusterctl keeps here"}
	cmd.AddCommand(rollout.Alpha(e), Topology())
	argument.Group(cmd)
	return cmd
}

// Topology returns the command for "topology", which clusterctl has removed. It is available below alpha and at the top
// level.
func Topology() *cobra.Command {
	return argument.Removed("topology", "clusterctl has no \"alpha topology plan\" any more: \"slipway plan -f FILE\" shows what a change of a Cluster or ClusterClass would do")
}
