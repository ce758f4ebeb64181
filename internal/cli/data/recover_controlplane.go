package data

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/recover"
)

// RecoverCommand returns the recover command.
func RecoverCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "recover", Short: "Recover a control plane whose etcd has lost its quorum"}
	cmd.AddCommand(recoverControlPlaneCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// recoveryOptions holds the flag values.
type recoveryOptions struct {
	connection *management.Flags
	want       recover.RecoveryOptions
	consent    *term.ConfirmFlags
}

// recoverControlPlaneCommand returns the "recover controlplane" command.
func recoverControlPlaneCommand(e term.Env) *cobra.Command {
	o := &recoveryOptions{}
	cmd := &cobra.Command{
		Use:   "controlplane CLUSTER",
		Short: "Rebuild etcd of a control plane on machines from a member that is left, or from a snapshot",
		Long: `Recover a KubeadmControlPlane that has lost so many members of etcd that the others have no quorum: show which member survives, what
would be lost and which Machines are replaced, ask, rebuild etcd from the survivor, and wait until the control plane is whole. The machines
of the other members are deleted before that. Where the machines of lost members can be started again, do that instead: it loses nothing.

With --snapshot, the control plane goes back to a snapshot of an EtcdSnapshotPolicy instead, whether it has a quorum or not: everything written
since then is lost. The snapshot is brought to one machine, which has to be older, and checked there before anything else is changed.

Once it has begun, the recovery continues without this command; run it again to follow it. The survivor is reached through its
infrastructure machine, which the Local provider knows. For others, --manual prints a program to run on the survivor's node.`,
		Example: `  slipway recover controlplane demo --dry-run
  slipway recover controlplane demo
  slipway recover controlplane demo --survivor demo-x2c9f --manual
  slipway recover controlplane demo --snapshot demo-20261125T020000Z`,
		Args: term.ExactlyOneArgument("CLUSTER"),
	}
	flags := cmd.Flags()
	o.connection = management.AddFlags(flags)
	cmd.ValidArgsFunction = o.connection.CompleteCluster(e)
	flags.StringVar(&o.want.Survivor, "survivor", "", "Machine from whose member etcd is rebuilt, or that a snapshot is restored on (default: the one that has most, or the oldest)")
	flags.BoolVar(&o.want.Manual, "manual", false, "print the program that rebuilds etcd, to be run by hand on the survivor's node")
	flags.BoolVar(&o.want.Force, "force", false, "rebuild etcd although it is not known that the other members are lost and gone: two clusters may result")
	flags.StringVar(&o.want.Snapshot.Name, "snapshot", "", "name of a snapshot to go back to, as \"slipway snapshots list\" prints it (default: none, a member's data is kept)")
	flags.StringVar(&o.want.Snapshot.Policy, "policy", "", "EtcdSnapshotPolicy whose store has the snapshot (default: the one that lists it)")
	flags.StringVar(&o.want.Snapshot.IdentitySecret, "identity-secret", "", "Secret with the identity of age in its key \"identity\", for a snapshot that is encrypted")
	flags.BoolVar(&o.want.Snapshot.OtherCluster, "other-cluster", false, "allow a snapshot of a Cluster of this name with another UID")
	o.consent = term.AddConfirmFlags(flags, "print what would be done, and change nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := o.connection.Connect(e)
		if err != nil {
			return err
		}
		return c.Explain(o.run(cmd.Context(), e, c, args[0]))
	}
	return cmd
}

func (o *recoveryOptions) run(ctx context.Context, e term.Env, c *management.Connection, name string) error {
	of, err := describe.GetCluster(ctx, c.Client, client.ObjectKey{Namespace: c.Namespace, Name: name})
	if err != nil {
		return err
	}
	say := func(text string) { _, _ = fmt.Fprintln(e.Err, text) }
	order := recover.Recoverer{Client: c.Client, Now: e.Now, Progress: say, Program: func(node, program string) {
		say("Run this as root on node " + node + " of the survivor, for example with `ssh " + node + " sudo bash -s`:")
		_, _ = fmt.Fprintln(e.Out, program)
	}}
	p, err := order.Prepare(ctx, of, o.want)
	if err != nil {
		return err
	}
	work := term.ConfirmedWork{
		Verb: "recover", Plan: p, Lines: p.Lines(), Do: func(ctx context.Context) error { return order.Run(ctx, of.Namespace, p) },
		Done: func(took string) string {
			data := "Machine " + p.Survivor
			if p.Snapshot != nil {
				data = "snapshot " + p.Snapshot.Name
			}
			return fmt.Sprintf("The control plane of cluster %s is whole again after %s, with the data of %s.", p.Cluster, took, data)
		},
	}
	if p.UnderWay {
		work.Verb = ""
	}
	return o.consent.Run(ctx, e, work)
}
