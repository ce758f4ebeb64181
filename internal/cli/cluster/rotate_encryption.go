package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/operate/encryptionkeys"
	"github.com/slipwayhq/slipway/internal/operate/kubeconfig"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/workload"
)

// rotateEncryptionCommand returns the "rotate encryption" command, for [RotateCommand].
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
	consent := term.AddConfirmFlags(cmd.Flags(), "print the steps and the progress of the rotation, and change nothing")
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		// The rotator calls it when the API server has restarted with the new keys.
		rewrite := func(ctx context.Context, key client.ObjectKey) (int, error) {
			data, err := kubeconfig.ReadKubeconfig(ctx, c.Client, key)
			if err != nil {
				return 0, err
			}
			config, err := workload.ParseKubeconfig(data, policy.Configuration{})
			if err != nil {
				return 0, err
			}
			return encryptionkeys.RewriteAll(ctx, config)
		}
		rotator := encryptionkeys.Rotator{Operation: c.Operation(e), Rewrite: rewrite}
		done := fmt.Sprintf("The etcd data of cluster %s is encrypted with new keys; the old keys are removed.", args[0])
		return runRotation(ctx, e, c, rotation[encryptionkeys.Plan]{rotator, consent, args[0], done})
	})
	return cmd
}
