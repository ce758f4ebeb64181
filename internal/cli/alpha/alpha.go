// Package alpha is the verb "alpha": what clusterctl has there, and answers for what it had there once.
//
// Does: groups the verbs below it.
//
// Never: does anything itself.
//
// Read first: Command.
package alpha

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/rollout"
)

// Command builds the verb.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "alpha", Short: "Verbs that clusterctl keeps here"}
	cmd.AddCommand(rollout.Alpha(e), Topology())
	argument.Group(cmd)
	return cmd
}

// Topology answers for what clusterctl had once, below alpha and where it is looked for without.
func Topology() *cobra.Command {
	return argument.Removed("topology", "clusterctl has no \"alpha topology plan\" any more: \"slipway plan -f FILE\" shows what a change of a Cluster or ClusterClass would do")
}
