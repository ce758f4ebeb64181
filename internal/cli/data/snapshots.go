package data

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/operate/etcdrecovery"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// SnapshotsCommand returns the snapshots command, for package cli.
func SnapshotsCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "snapshots", Short: "List and take etcd snapshots of workload clusters"}
	cmd.AddCommand(snapshotsListCommand(e), snapshotsTakeCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// snapshotsListCommand returns the "snapshots list" command, for [SnapshotsCommand].
func snapshotsListCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [CLUSTER]",
		Short: "List the snapshots of EtcdSnapshotPolicies, newest first",
		Long: `List the etcd snapshots of one cluster, or of all clusters in a namespace, from the status of the
EtcdSnapshotPolicies. The status contains the ten newest snapshots of each cluster.`,
		Example: "  slipway snapshots list\n  slipway snapshots list demo -o json",
		Args:    cobra.MaximumNArgs(1),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = connection.CompleteCluster(e)
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		name := ""
		if len(args) > 0 {
			name = args[0]
			if _, err := c.Cluster(ctx, name); err != nil {
				return err
			}
		}
		listed, err := etcdrecovery.ListSnapshots(ctx, c.Client, c.Namespace, name)
		if err != nil {
			return err
		}
		for _, problem := range listed.Problems {
			_, _ = fmt.Fprintln(e.Err, problem)
		}
		return format.Print(e.Out, listed, func(w io.Writer) error { return printSnapshots(w, e.Now(), listed) })
	})
	return cmd
}

func printSnapshots(out io.Writer, now time.Time, listed etcdrecovery.SnapshotList) error {
	if len(listed.Snapshots) == 0 {
		_, err := fmt.Fprintln(out, "There are no snapshots. An EtcdSnapshotPolicy takes them: `slipway docs etcd-snapshots` describes how to create one.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tCLUSTER\tPOLICY\tAGE\tREVISION\tSIZE\tVERSION\tENCRYPTED")
	for _, s := range listed.Snapshots {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%.1f MiB\t%s\t%t\n",
			s.Name, s.Cluster, s.Policy, progress.Elapsed(now.Sub(s.Time)), s.Revision, float64(s.Bytes)/(1<<20), s.Version, s.Encrypted)
	}
	if listed.More > 0 {
		_, _ = fmt.Fprintf(w, "%d older ones are in the stores.\n", listed.More)
	}
	return w.Flush()
}

// snapshotsTakeCommand returns the "snapshots take" command, for [SnapshotsCommand].
func snapshotsTakeCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "take CLUSTER",
		Short: "Take an etcd snapshot of a cluster and wait until it is stored",
		Long: `Request a snapshot from the EtcdSnapshotPolicy of a cluster, and wait until it is stored. The policy
defines the store, the encryption and the number of retained snapshots. Interrupting the wait does
not cancel the snapshot.`,
		Example: "  slipway snapshots take demo\n  slipway snapshots take demo --policy nightly",
		Args:    term.ExactlyOneArgument("CLUSTER"),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = connection.CompleteCluster(e)
	policy := cmd.Flags().String("policy", "", "EtcdSnapshotPolicy that takes the snapshot (default: the only policy for the cluster)")
	timeout := term.AddWaitTimeout(cmd.Flags(), 25*time.Minute, "how long to wait")
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		ctx, cancel := context.WithTimeout(ctx, *timeout)
		defer cancel()
		cluster, err := c.Cluster(ctx, args[0])
		if err != nil {
			return err
		}
		s, err := etcdrecovery.SnapshotClient{Operation: c.Operation(e)}.Take(ctx, cluster, *policy)
		if err != nil {
			return err
		}
		return format.Print(e.Out, s, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "Snapshot %s of cluster %s is stored: revision %d, %d bytes.\n", s.Name, s.Cluster, s.Revision, s.Bytes)
			return err
		})
	})
	return cmd
}
