package data

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/operate/etcdrecovery"
)

// RecoverCommand returns the recover command, for package cli.
func RecoverCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "recover", Short: "Recover a control plane that has lost etcd quorum"}
	cmd.AddCommand(recoverControlPlaneCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// recoveryOptions holds the flag values.
type recoveryOptions struct {
	connection *management.Flags
	want       etcdrecovery.RecoveryOptions
	consent    *term.ConfirmFlags
}

// recoverControlPlaneCommand returns the "recover controlplane" command, for [RecoverCommand].
func recoverControlPlaneCommand(e term.Env) *cobra.Command {
	o := &recoveryOptions{}
	cmd := &cobra.Command{
		Use:   "controlplane CLUSTER",
		Short: "Rebuild etcd of a KubeadmControlPlane from a member or a snapshot",
		Long: `Recover a KubeadmControlPlane that has lost etcd quorum. The command shows the surviving member, the
data that would be lost and the Machines that are replaced, prompts for confirmation, rebuilds etcd
from the survivor, and waits until the control plane is available. Before the rebuild, the Machines
of the other members are deleted. If the machines of the lost members can be started again, start
them instead: this loses no data.

With --snapshot, the control plane is restored from a snapshot of an EtcdSnapshotPolicy, whether it
has quorum or not. All later writes are lost. Before anything else changes, the snapshot is copied
to one Machine, which must be older than the snapshot, and is verified there.

After its start, the recovery continues without this command; run the command again to follow it.
The Local provider gives access to the survivor through its infrastructure machine. For other
providers, --manual prints a program to run on the node of the survivor.`,
		Example: `  slipway recover controlplane demo --dry-run
  slipway recover controlplane demo
  slipway recover controlplane demo --survivor demo-x2c9f --manual
  slipway recover controlplane demo --snapshot demo-20261125T020000Z`,
		Args: term.ExactlyOneArgument("CLUSTER"),
	}
	flags := cmd.Flags()
	o.connection = management.AddFlags(flags)
	cmd.ValidArgsFunction = o.connection.CompleteCluster(e)
	flags.StringVar(&o.want.Survivor, "survivor", "", "Machine whose member etcd is rebuilt from, or on which the snapshot is restored (default: the member with the most data, or the oldest Machine)")
	flags.BoolVar(&o.want.Manual, "manual", false, "print the program that rebuilds etcd, to run manually on the node of the survivor")
	flags.BoolVar(&o.want.Force, "force", false, "rebuild etcd even if the loss of the other members is not certain; this can result in two clusters")
	flags.StringVar(&o.want.Snapshot.Name, "snapshot", "", "name of the snapshot to restore, from \"slipway snapshots list\" (default: none; use the data of a member)")
	flags.StringVar(&o.want.Snapshot.Policy, "policy", "", "EtcdSnapshotPolicy whose store contains the snapshot (default: the policy that lists it)")
	flags.StringVar(&o.want.Snapshot.IdentitySecret, "identity-secret", "", "Secret with an age identity in its key \"identity\", for an encrypted snapshot")
	flags.BoolVar(&o.want.Snapshot.OtherCluster, "other-cluster", false, "allow a snapshot of a Cluster with the same name and another UID")
	o.consent = term.AddConfirmFlags(flags, "print the planned steps and change nothing")
	cmd.RunE = o.connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		return o.run(ctx, e, c, args[0])
	})
	return cmd
}

func (o *recoveryOptions) run(ctx context.Context, e term.Env, c *management.Connection, name string) error {
	cluster, err := c.Cluster(ctx, name)
	if err != nil {
		return err
	}
	recoverer := etcdrecovery.Recoverer{Operation: c.Operation(e), Program: func(node, program string) {
		_, _ = fmt.Fprintf(e.Err, "Run this program as root on node %s of the survivor, for example with `ssh %s sudo bash -s`:\n", node, node)
		_, _ = fmt.Fprintln(e.Out, program)
	}}
	p, err := recoverer.Prepare(ctx, cluster, o.want)
	if err != nil {
		return err
	}
	return o.consent.Run(ctx, e, term.ConfirmedWork{Verb: "recover", Plan: p,
		Do: func(ctx context.Context) error { return recoverer.Run(ctx, cluster.Namespace, p) },
		Done: func(took string) string {
			data := "Machine " + p.Survivor
			if p.Snapshot != nil {
				data = "snapshot " + p.Snapshot.Name
			}
			return fmt.Sprintf("The control plane of cluster %s is recovered after %s, with the data of %s.", p.Cluster, took, data)
		},
	})
}
