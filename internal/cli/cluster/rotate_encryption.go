package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/encryptionkeys"
	operatekubeconfig "github.com/slipwayhq/slipway/internal/operate/kubeconfig"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/workload"
)

// rotateEncryptionCommand returns the "rotate encryption" command.
func rotateEncryptionCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "encryption CLUSTER",
		Short: "Rotate the keys that encrypt the etcd data of a hosted control plane",
		Long: `Rotate the keys in Secret CLUSTER-encryption that encrypt the etcd data of a cluster with a hosted
control plane, while the cluster runs. The command shows the steps, prompts for confirmation and
executes them. First new keys are added and used for encryption, then all stored objects are
rewritten, then the old keys are removed. The control plane restarts in place twice; nodes and Pods
are not affected.

The Secret records the progress. The rotation does not proceed without this command: after an
interruption, run it again to continue. Earlier etcd snapshots need the old keys: retain a backup of
the Secret as long as you retain the snapshots. To rotate the keys of the management cluster itself,
use "slipway encryption rotate".`,
		Example: `  slipway rotate encryption demo --dry-run
  slipway rotate encryption demo`,
		Args: term.ExactlyOneArgument("CLUSTER"),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = connection.CompleteCluster(e)
	agreed := term.AddConfirmFlags(cmd.Flags(), "print the steps and the progress of the rotation, and change nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := connection.Connect(e)
		if err != nil {
			return err
		}
		order := encryptionkeys.Rotator{
			Client: c.Client, Progress: func(text string) { _, _ = fmt.Fprintln(e.Err, text) },
			Rewrite: func(ctx context.Context, key client.ObjectKey) (int, error) {
				data, err := operatekubeconfig.ReadKubeconfig(ctx, c.Client, key)
				if err != nil {
					return 0, err
				}
				config, err := workload.ParseKubeconfig(data, policy.Configuration{})
				if err != nil {
					return 0, err
				}
				return encryptionkeys.RewriteAll(ctx, config)
			},
		}
		return c.Explain(rotateKeys(cmd.Context(), e, agreed, order, client.ObjectKey{Namespace: c.Namespace, Name: args[0]}))
	}
	return cmd
}

func rotateKeys(ctx context.Context, e term.Env, agreed *term.ConfirmFlags, order encryptionkeys.Rotator, key client.ObjectKey) error {
	of, err := describe.GetCluster(ctx, order.Client, key)
	if err != nil {
		return err
	}
	p, err := order.Prepare(ctx, of)
	if err != nil {
		return err
	}
	work := term.ConfirmedWork{
		Verb: "rotate", Plan: p, Lines: p.Lines(),
		Do: resumable(order.Progress, func(ctx context.Context) error { return order.Run(ctx, of.Namespace, p) }),
		Done: func(took string) string {
			return fmt.Sprintf("What cluster %s has in etcd is encrypted with new keys after %s, and the old ones are forgotten.", key.Name, took)
		},
	}
	if p.UnderWay || p.Problem != "" {
		work.Verb = ""
	}
	return agreed.Run(ctx, e, work)
}
