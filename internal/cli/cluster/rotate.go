package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/rotate"
)

// RotateCommand returns the rotate command, for package cli. The command is for workload clusters with a hosted control
// plane.
func RotateCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "rotate", Short: "Rotate the certificate authority or encryption keys of a cluster"}
	cmd.AddCommand(rotateAuthorityCommand(e), rotateEncryptionCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// rotateOptions holds the flag values.
type rotateOptions struct {
	connection       *management.Flags
	certificate, key string
	consent          *term.ConfirmFlags
}

// rotateAuthorityCommand returns the "rotate authority" command.
func rotateAuthorityCommand(e term.Env) *cobra.Command {
	o := &rotateOptions{}
	cmd := &cobra.Command{
		Use:   "authority CLUSTER",
		Short: "Rotate the certificate authority of a hosted control plane",
		Long: `Rotate the certificate authority of a cluster with a hosted control plane, in Secret CLUSTER-ca,
while the cluster runs. The command shows the steps, prompts for confirmation and executes them.
First the new authority is trusted in addition to the old authority, then it signs, then the old
authority is removed. The control plane restarts in place each time, and all nodes are replaced
twice with the strategy of their MachineDeployment. At the end, everything that the old authority
signed is rejected: download kubeconfigs again.

The Secret records the progress. The rotation does not proceed without this command: after an
interruption, run it again to continue. The rotation does not start during a rollout, or if a node
cannot be replaced.`,
		Example: `  slipway rotate authority demo --dry-run
  slipway rotate authority demo
  slipway rotate authority demo --certificate new.crt --key new.key`,
		Args: term.ExactlyOneArgument("CLUSTER"),
	}
	flags := cmd.Flags()
	o.connection = management.AddFlags(flags)
	cmd.ValidArgsFunction = o.connection.CompleteCluster(e)
	flags.StringVar(&o.certificate, "certificate", "", "file with the certificate of the new authority in PEM (default: generate a certificate)")
	flags.StringVar(&o.key, "key", "", "file with the private key of the new authority in PEM")
	o.consent = term.AddConfirmFlags(flags, "print the steps and the progress of the rotation, and change nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		authority, err := o.newAuthority(e)
		if err != nil {
			return err
		}
		run := func(ctx context.Context, c *management.Connection, args []string) error {
			rotator := rotate.Rotator{Operation: c.Operation(e), NewCA: authority}
			return runRotation(ctx, e, c, rotation[rotate.Plan]{rotator, o.consent, args[0], authorityRotated(args[0])})
		}
		return o.connection.RunE(e, run)(cmd, args)
	}
	return cmd
}

// newAuthority returns the new authority from the flags; nil to generate one.
func (o *rotateOptions) newAuthority(e term.Env) (*pki.Pair, error) {
	if o.certificate == "" && o.key == "" {
		return nil, nil
	}
	if o.certificate == "" || o.key == "" {
		return nil, fault.New(fault.Invalid, "Usage", "--certificate and --key must be set together")
	}
	var parts [2][]byte
	for i, file := range []string{o.certificate, o.key} {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fault.New(fault.Invalid, "Usage", "the new authority cannot be read").From(err)
		}
		parts[i] = data
	}
	pair, err := rotate.ParseCA(parts[0], parts[1], e.Now())
	return &pair, err
}

func authorityRotated(name string) string {
	return fmt.Sprintf("The certificate authority of cluster %s is rotated. Everything that the old authority signed is rejected: get new kubeconfigs with "+
		"\"slipway get kubeconfig %s\", also with --user, and replace the certificate in programs outside of the cluster.", name, name)
}

// rotator rotates the certificate authority or the encryption keys of a cluster. Package operate/rotate implements it
// for certificate authorities, and package operate/encryptionkeys for keys.
type rotator[P term.Plan] interface {
	Prepare(ctx context.Context, cluster *clusterv1.Cluster) (P, error)
	Run(ctx context.Context, namespace string, p P) error
}

// rotation is a requested rotation of a cluster. done is the message at its end. Both rotate commands fill it for
// runRotation.
type rotation[P term.Plan] struct {
	rotator[P]
	consent    *term.ConfirmFlags
	name, done string
}

// runRotation implements both rotate commands: it prepares the plan, prompts for confirmation and runs the rotation.
// rotateAuthorityCommand and rotateEncryptionCommand call it (rotate_encryption.go).
func runRotation[P term.Plan](ctx context.Context, e term.Env, c *management.Connection, r rotation[P]) error {
	cluster, err := c.Cluster(ctx, r.name)
	if err != nil {
		return err
	}
	p, err := r.Prepare(ctx, cluster)
	if err != nil {
		return err
	}
	return r.consent.Run(ctx, e, term.ConfirmedWork{Verb: "rotate", Plan: p,
		Do: func(ctx context.Context) error {
			err := r.Run(ctx, cluster.Namespace, p)
			if errors.Is(err, context.Canceled) {
				_, _ = fmt.Fprintln(e.Err, "The rotation is interrupted; run the same command again to continue it.")
			}
			return err
		},
		Done: func(took string) string { return r.done + " The rotation took " + took + "." },
	})
}
