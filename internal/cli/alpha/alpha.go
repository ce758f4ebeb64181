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
	"github.com/slipwayhq/slipway/internal/fault"
)

// Command builds the verb.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "alpha", Short: "Verbs that clusterctl keeps here"}
	controls := rollout.Alpha(e)
	controls.AddCommand(removed("undo", "clusterctl has no \"alpha rollout undo\" any more: apply the former machine template again, or name it in spec.template of the MachineDeployment; \"slipway rollout status\" follows it"))
	topology := removed("topology", "clusterctl has no \"alpha topology plan\" any more: \"slipway plan -f FILE\" shows what a change of a Cluster or ClusterClass would do")
	cmd.AddCommand(controls, topology)
	argument.Group(cmd)
	return cmd
}

// removed is a verb that clusterctl had once: it answers what to do instead.
func removed(name, answer string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return fault.New(fault.Invalid, "VerbRemoved", "%s", answer) },
	}
}
