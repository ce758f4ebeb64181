package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// DeleteClusterCommand returns the delete cluster command.
func DeleteClusterCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster {CLUSTER... | --all}",
		Short: "Delete a cluster with everything in it, and wait until it is gone",
		Long: `Delete a cluster: its nodes, its control plane with all data, its network. The command asks for the
deletion and waits until everything is gone. Interrupting the wait does not stop the deletion. With --all it
names the clusters of the namespace and asks first.`,
		Example: `  slipway delete cluster demo
  slipway delete cluster f1 f2 f3
  slipway delete cluster --all -n team-a`,
	}
	chosen := &selection{}
	cmd.Args = chosen.args
	cmd.Flags().BoolVar(&chosen.all, "all", false, "delete every cluster of the namespace")
	cmd.Flags().BoolVarP(&chosen.yes, "yes", "y", false, "with --all: do not ask")
	connection := management.Add(cmd.Flags())
	cmd.ValidArgsFunction = connection.CompleteCluster(e)
	timeout := cmd.Flags().Duration("wait-timeout", 10*time.Minute, "how long to wait until the cluster is gone; 0 does not wait")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *timeout < 0 {
			return fault.New(fault.Invalid, "Usage", "--wait-timeout cannot be negative; 0 does not wait")
		}
		c, err := connection.Connect(e)
		if err != nil {
			return err
		}
		c.WarnOverlooked(e)
		if chosen.all {
			return c.Explain(chosen.runAll(cmd.Context(), e, c, *timeout))
		}
		return c.Explain(runNamed(cmd.Context(), e, c, args, *timeout))
	}
	return cmd
}

type deletion struct {
	key     client.ObjectKey
	timeout time.Duration
}

// awaited is a cluster whose deletion was requested: its previous state, whether it existed, and the time of the
// request.
type awaited struct {
	first describe.Snapshot
	found bool
	start time.Time
}

func await(ctx context.Context, e term.Env, c *management.Connection, d deletion, a awaited) error {
	if a.found && d.timeout == 0 {
		_, _ = fmt.Fprintf(e.Err, "Cluster %q is being deleted.\n", d.key.Name)
		return nil
	}
	if a.found {
		if err := wait(ctx, e, c, d, a.first); err != nil {
			return err
		}
	}
	return gone(e, d, a.start)
}

func gone(e term.Env, d deletion, start time.Time) error {
	_, err := fmt.Fprintf(e.Out, "Cluster %q is gone after %s.\n", d.key.Name, progress.Elapsed(e.Now().Sub(start)))
	return err
}

func wait(ctx context.Context, e term.Env, c *management.Connection, d deletion, first describe.Snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	src := progress.NewAPI(ctx, c.Client, d.key)
	err := progress.Run(ctx, src, func(s describe.Snapshot, err error) ([]progress.Step, error) {
		switch {
		case apierrors.IsNotFound(err):
			return progress.Deletion(first, describe.Snapshot{}), nil
		case err != nil:
			return nil, err
		case s.Cluster.UID != first.Cluster.UID:
			return progress.Deletion(first, describe.Snapshot{}), nil // another client created a new cluster with the same name
		}
		return progress.Deletion(first, s), nil
	}, term.Reporter(e))
	known := fault.As(err)
	if errors.Is(err, context.Canceled) || known != nil && known.Reason == progress.ReasonTimeout {
		_, _ = fmt.Fprintf(e.Err, "The deletion of cluster %q continues; \"slipway describe cluster %s -n %s%s\" shows what it waits for.\n", d.key.Name, d.key.Name, d.key.Namespace, c.RepeatFlags)
	}
	return err
}
