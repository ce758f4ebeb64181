package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/operate/upgrade"
)

// RolloutCommand returns the rollout command, for package cli.
func RolloutCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Restart, follow, pause or resume a rollout",
	}
	cmd.AddCommand(rolloutChangeCommands(e, "slipway rollout")...)
	cmd.AddCommand(rolloutStatusCommand(e), removedUndoCommand())
	term.MarkGroup(cmd)
	return cmd
}

// removedUndoCommand returns the command for "undo", which clusterctl has removed.
func removedUndoCommand() *cobra.Command {
	return term.RemovedCommand("undo", "clusterctl has removed \"alpha rollout undo\": apply the previous machine template again, or set it in spec.template of the MachineDeployment; \"slipway rollout status\" shows the progress")
}

// alphaRolloutCommand returns "alpha rollout", the form of the command in clusterctl.
func alphaRolloutCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Restart, pause or resume a rollout, as \"slipway rollout\" does",
	}
	cmd.AddCommand(append(rolloutChangeCommands(e, "slipway alpha rollout"), removedUndoCommand(), term.RemovedCommand("status", "clusterctl has no \"alpha rollout status\"; \"slipway rollout status KIND/NAME\" follows a rollout"))...)
	term.MarkGroup(cmd)
	return cmd
}

// rolloutChange is a command that modifies a rollout. rolloutChangeCommands creates them for "rollout" and "alpha
// rollout".
type rolloutChange struct {
	name, done, short, long string
	apply                   func(context.Context, term.Env, client.Client, string, upgrade.RolloutResource) error
}

// rolloutChangeCommands returns the commands that modify a rollout, for a parent command with this path.
func rolloutChangeCommands(e term.Env, path string) []*cobra.Command {
	var out []*cobra.Command
	for _, c := range []rolloutChange{
		{"restart", "restarted", "Replace all Machines of a MachineDeployment or KubeadmControlPlane",
			"Replace all Machines with the rollout strategy of the MachineDeployment or KubeadmControlPlane. The\ncommand sets spec.rollout.after to the current time, which makes all older Machines out of date.\n\"slipway rollout status\" follows the rollout.",
			func(ctx context.Context, e term.Env, c client.Client, namespace string, r upgrade.RolloutResource) error {
				return upgrade.Restart(ctx, c, namespace, r, e.Now())
			}},
		{"pause", "paused", "Pause a rollout",
			"Pause a rollout. The command sets spec.paused of a MachineDeployment. On a KubeadmControlPlane, it\nsets the annotation cluster.x-k8s.io/paused, which stops all reconciliation of the\nKubeadmControlPlane.",
			func(ctx context.Context, _ term.Env, c client.Client, namespace string, r upgrade.RolloutResource) error {
				return upgrade.Pause(ctx, c, namespace, r)
			}},
		{"resume", "resumed", "Resume a paused rollout", "Resume a paused rollout.",
			func(ctx context.Context, _ term.Env, c client.Client, namespace string, r upgrade.RolloutResource) error {
				return upgrade.Resume(ctx, c, namespace, r)
			}},
	} {
		out = append(out, c.command(e, path))
	}
	return out
}

func (c rolloutChange) command(e term.Env, path string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     c.name + " KIND/NAME",
		Short:   c.short,
		Long:    c.long,
		Example: fmt.Sprintf("  %s %s machinedeployment/demo-md-0\n  %s %s kcp/demo -n team-a", path, c.name, path, c.name),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		resources, err := upgrade.ParseResource(args, upgrade.Changeable())
		if err != nil {
			return err
		}
		m, err := connection.Connect(e)
		if err != nil {
			return err
		}
		for _, r := range resources {
			if err := c.apply(cmd.Context(), e, m.Client, m.Namespace, r); err != nil {
				return m.Explain(err)
			}
			if _, err := fmt.Fprintf(e.Out, "%s %s\n", r, c.done); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}
