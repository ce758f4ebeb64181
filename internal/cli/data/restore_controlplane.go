package data

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/operate/etcdrecovery"
)

// restoreControlPlaneOptions holds the flags of "restore controlplane".
type restoreControlPlaneOptions struct {
	connection *management.Flags
	want       etcdrecovery.RestoreOptions
	consent    *term.ConfirmFlags
}

// restoreControlPlaneCommand returns the "restore controlplane" command, for [RestoreCommand].
func restoreControlPlaneCommand(e term.Env) *cobra.Command {
	o := &restoreControlPlaneOptions{}
	cmd := &cobra.Command{
		Use:   "controlplane CLUSTER",
		Short: "Restore the control plane of a cluster from an etcd snapshot",
		Long: `Restore the control plane of a cluster from a snapshot of an EtcdSnapshotPolicy. The command shows
the data that would be lost, prompts for confirmation, and waits until the API server serves the
data of the snapshot. Interrupting the wait does not stop the restore.

This command restores hosted control planes. For control planes on Machines, use "slipway recover
controlplane CLUSTER --snapshot NAME". To restore the objects of a management cluster from a backup,
use "slipway restore FILE".`,
		Example: `  slipway snapshots list demo
  slipway restore controlplane demo --snapshot demo-20261125T020000Z
  slipway restore controlplane demo --dry-run`,
		Args: term.ExactlyOneArgument("CLUSTER"),
	}
	flags := cmd.Flags()
	o.connection = management.AddFlags(flags)
	cmd.ValidArgsFunction = o.connection.CompleteCluster(e)
	flags.StringVar(&o.want.Name, "snapshot", "", "name of the snapshot (default: the newest)")
	flags.StringVar(&o.want.Policy, "policy", "", "EtcdSnapshotPolicy whose store contains the snapshot (default: the policy that lists it)")
	flags.StringVar(&o.want.IdentitySecret, "identity-secret", "", "Secret with an age identity in its key \"identity\", for an encrypted snapshot")
	flags.BoolVar(&o.want.OtherCluster, "other-cluster", false, "allow a snapshot of a Cluster with the same name and another UID, for example after a restore of the management cluster")
	o.consent = term.AddConfirmFlags(flags, "print the data that would be lost and change nothing")
	cmd.RunE = o.connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		return o.run(ctx, e, c, args[0])
	})
	return cmd
}

func (o *restoreControlPlaneOptions) run(ctx context.Context, e term.Env, c *management.Connection, name string) error {
	cluster, err := c.Cluster(ctx, name)
	if err != nil {
		return err
	}
	snapshots := etcdrecovery.SnapshotClient{Operation: c.Operation(e)}
	r, err := snapshots.Prepare(ctx, cluster, o.want)
	if err != nil {
		return err
	}
	return o.consent.Run(ctx, e, term.ConfirmedWork{Verb: "restore", Plan: r,
		Do: func(ctx context.Context) error { return snapshots.Run(ctx, r) },
		Done: func(took string) string {
			return fmt.Sprintf("The control plane of cluster %s has the data of snapshot %s after %s.", r.Cluster, r.Name, took)
		},
	})
}
