package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/create"
	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// selection selects the clusters to delete: named ones, or all in the namespace.
type selection struct{ all, yes bool }

// args requires names, or none with --all.
func (s *selection) args(cmd *cobra.Command, args []string) error {
	switch {
	case s.all && len(args) > 0:
		return fault.New(fault.Invalid, "Usage", "--all deletes every cluster of the namespace: leave out %s, or --all", strings.Join(args, " "))
	case s.all:
		return nil
	}
	if len(args) > 1 {
		return nil
	}
	return term.One("CLUSTER")(cmd, args)
}

// runNamed deletes clusters by name. If one of them does not exist, it deletes none.
func runNamed(ctx context.Context, e term.Env, c *management.Connection, names []string, timeout time.Duration) error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range names {
		if _, err := describe.GetCluster(ctx, c.Client, client.ObjectKey{Namespace: c.Namespace, Name: name}); err != nil {
			return err
		}
	}
	return runEach(ctx, e, c, names, timeout)
}

// runAll deletes the existing clusters of a namespace.
func (s *selection) runAll(ctx context.Context, e term.Env, c *management.Connection, timeout time.Duration) error {
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
	return runEach(ctx, e, c, names, timeout)
}

// runEach requests the deletion of all clusters, then waits for them one after the other.
func runEach(ctx context.Context, e term.Env, c *management.Connection, names []string, timeout time.Duration) error {
	start := e.Now()
	before := map[string]describe.Snapshot{}
	for _, name := range names {
		key := client.ObjectKey{Namespace: c.Namespace, Name: name}
		first, err := describe.Read(ctx, c.Client, key, describe.Options{})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			continue // the cluster was just deleted
		}
		if len(before) == 0 { // check before the deletion, because no webhook is called for a cluster that is being deleted
			if away := c.NoManager(ctx, key); away != "" {
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
		d := deletion{client.ObjectKey{Namespace: c.Namespace, Name: name}, max(timeout-e.Now().Sub(start), time.Second)}
		if timeout == 0 {
			d.timeout = 0
		}
		if err := await(ctx, e, c, d, awaited{first, found, start}); err != nil {
			return err
		}
	}
	return nil
}
