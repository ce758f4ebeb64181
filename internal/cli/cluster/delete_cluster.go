package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/create"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// DeleteClusterCommand returns the delete cluster command, for package cli.
func DeleteClusterCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster {CLUSTER... | --all}",
		Short: "Delete a cluster and wait until it is gone",
		Long: `Delete a cluster: its nodes, its control plane with all data, and its network. The command requests
the deletion and waits until everything is gone. Interrupting the wait does not stop the deletion.
With --all, the command lists the clusters of the namespace and prompts for confirmation first.`,
		Example: `  slipway delete cluster demo
  slipway delete cluster f1 f2 f3
  slipway delete cluster --all -n team-a`,
	}
	chosen := &deleteSelection{}
	cmd.Args = chosen.args
	cmd.Flags().BoolVar(&chosen.all, "all", false, "delete every cluster of the namespace")
	cmd.Flags().BoolVarP(&chosen.yes, "yes", "y", false, "with --all: skip the confirmation prompt")
	connection := management.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = connection.CompleteCluster(e)
	timeout := term.AddOptionalWaitTimeout(cmd.Flags(), 10*time.Minute, "how long to wait for the deletion")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := connection.Connect(e)
		if err != nil {
			return err
		}
		c.WarnIgnoredKubeconfig(e)
		if chosen.all {
			return c.Explain(chosen.runAll(cmd.Context(), e, c, *timeout))
		}
		return c.Explain(deleteNamed(cmd.Context(), e, c, args, *timeout))
	}
	return cmd
}

// deleteTarget is a cluster to delete, with the remaining time to wait for it.
type deleteTarget struct {
	key     client.ObjectKey
	timeout time.Duration
}

// requestedDeletion is a cluster whose deletion was requested: its previous state, whether it existed, and the time of
// the request.
type requestedDeletion struct {
	first describe.Snapshot
	found bool
	start time.Time
}

// awaitDeletion waits until a cluster is gone and prints the result. deleteEach calls it when all deletions are
// requested.
func awaitDeletion(ctx context.Context, e term.Env, c *management.Connection, d deleteTarget, a requestedDeletion) error {
	if a.found && d.timeout == 0 {
		_, _ = fmt.Fprintf(e.Err, "Cluster %q is being deleted.\n", d.key.Name)
		return nil
	}
	if a.found {
		if err := waitForDeletion(ctx, e, c, d, a.first); err != nil {
			return err
		}
	}
	return printDeleted(e, d, a.start)
}

func printDeleted(e term.Env, d deleteTarget, start time.Time) error {
	_, err := fmt.Fprintf(e.Out, "Cluster %q is gone after %s.\n", d.key.Name, progress.Elapsed(e.Now().Sub(start)))
	return err
}

// waitForDeletion shows the progress of the deletion until the cluster is gone. first is its state before the deletion.
func waitForDeletion(ctx context.Context, e term.Env, c *management.Connection, d deleteTarget, first describe.Snapshot) error {
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
		_, _ = fmt.Fprintf(e.Err, "The deletion of cluster %q continues; \"slipway describe cluster %s -n %s%s\" shows its progress.\n", d.key.Name, d.key.Name, d.key.Namespace, c.RepeatFlags)
	}
	return err
}

// deleteSelection selects the clusters to delete: named ones, or all in the namespace.
type deleteSelection struct{ all, yes bool }

// args requires names, or none with --all.
func (s *deleteSelection) args(cmd *cobra.Command, args []string) error {
	switch {
	case s.all && len(args) > 0:
		return fault.New(fault.Invalid, "Usage", "--all deletes every cluster of the namespace: leave out %s, or --all", strings.Join(args, " "))
	case s.all:
		return nil
	}
	if len(args) > 1 {
		return nil
	}
	return term.ExactlyOneArgument("CLUSTER")(cmd, args)
}

// deleteNamed deletes clusters by name. If one of them does not exist, it deletes none.
func deleteNamed(ctx context.Context, e term.Env, c *management.Connection, names []string, timeout time.Duration) error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range names {
		if _, err := c.Cluster(ctx, name); err != nil {
			return err
		}
	}
	return deleteEach(ctx, e, c, names, timeout)
}

// runAll deletes the existing clusters of a namespace.
func (s *deleteSelection) runAll(ctx context.Context, e term.Env, c *management.Connection, timeout time.Duration) error {
	var list clusterv1.ClusterList
	if err := c.Client.List(ctx, &list, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		_, err := fmt.Fprintf(e.Out, "There is no cluster in namespace %s.\n", c.Namespace)
		return err
	}
	_, _ = fmt.Fprintf(e.Err, "To be deleted, with all data, in namespace %s: %s\n", c.Namespace, strings.Join(names, ", "))
	if !s.yes {
		if err := e.Confirm("delete"); err != nil {
			return err
		}
	}
	return deleteEach(ctx, e, c, names, timeout)
}

// deleteEach requests the deletion of all clusters, then waits for them one after the other. The timeout is for all
// waits together.
func deleteEach(ctx context.Context, e term.Env, c *management.Connection, names []string, timeout time.Duration) error {
	start := e.Now()
	before := map[string]describe.Snapshot{}
	for _, name := range names {
		key := c.Key(name)
		first, err := describe.Read(ctx, c.Client, key, describe.Options{})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			continue // the cluster was just deleted
		}
		if len(before) == 0 { // check before the deletion, because no webhook is called for a cluster that is being deleted
			if away := c.ManagerProblem(ctx, key); away != "" {
				_, _ = fmt.Fprintln(e.Err, away)
			}
		}
		before[name] = first
		if err := create.Delete(ctx, c.Client, key); err != nil {
			return err
		}
	}
	for _, name := range names {
		first, found := before[name]
		d := deleteTarget{c.Key(name), max(timeout-e.Now().Sub(start), time.Second)}
		if timeout == 0 {
			d.timeout = 0
		}
		if err := awaitDeletion(ctx, e, c, d, requestedDeletion{first, found, start}); err != nil {
			return err
		}
	}
	return nil
}
