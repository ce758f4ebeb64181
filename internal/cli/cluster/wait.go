package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// WaitCommand returns the wait command, for package cli.
func WaitCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "wait", Short: "Wait until a workload cluster is available"}
	cmd.AddCommand(waitClusterCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

func waitClusterCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Wait until a cluster and all its nodes are available",
		Long: `Wait until a cluster is available, its control plane and all its nodes are ready and up to date, and
its add-ons, such as DNS, are available, also right after you change a version, a template or a
number of replicas. If the wait requires a change by a user, for example because a Cluster or a
rollout is paused, the command exits at once with exit code 2.`,
		Example: "  slipway kubectl apply -f examples/quickstart.yaml\n  slipway wait cluster quickstart",
		Args:    term.ExactlyOneArgument("NAME"),
	}
	connection := management.AddFlags(cmd.Flags())
	timeout := term.AddWaitTimeout(cmd.Flags(), 10*time.Minute, "how long to wait")
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		ctx, cancel := context.WithTimeout(ctx, *timeout)
		defer cancel()
		began, key := e.Now(), c.Key(args[0])
		if _, err := c.Cluster(ctx, args[0]); err != nil {
			return err
		}
		if away := c.ManagerProblem(ctx, key); away != "" {
			_, _ = fmt.Fprintln(e.Err, away)
		}
		if err := progress.WaitForCreation(ctx, c.Client, key, term.Reporter(e)); err != nil {
			return err
		}
		_, err := fmt.Fprintf(e.Out, "Cluster %q is ready after %s.\n", args[0], progress.Elapsed(e.Now().Sub(began)))
		return err
	})
	return cmd
}
