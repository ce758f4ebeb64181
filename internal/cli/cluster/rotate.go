package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	operaterotate "github.com/slipwayhq/slipway/internal/operate/rotate"
)

// RotateCommand returns the rotate command.
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
		order, err := o.order(e)
		if err != nil {
			return err
		}
		c, err := o.connection.Connect(e)
		if err != nil {
			return err
		}
		order.Client = c.Client
		return c.Explain(o.run(cmd.Context(), e, order, client.ObjectKey{Namespace: c.Namespace, Name: args[0]}))
	}
	return cmd
}

// order returns the rotation that the flags request.
func (o *rotateOptions) order(e term.Env) (operaterotate.Rotator, error) {
	order := operaterotate.Rotator{Now: e.Now, Progress: func(text string) { _, _ = fmt.Fprintln(e.Err, text) }}
	if o.certificate == "" && o.key == "" {
		return order, nil
	}
	if o.certificate == "" || o.key == "" {
		return order, fault.New(fault.Invalid, "Usage", "--certificate and --key belong together: give both, or none")
	}
	var parts [2][]byte
	for i, file := range []string{o.certificate, o.key} {
		data, err := os.ReadFile(file)
		if err != nil {
			return order, fault.New(fault.Invalid, "Usage", "the new authority cannot be read").From(err)
		}
		parts[i] = data
	}
	pair, err := operaterotate.ParseCA(parts[0], parts[1], e.Now())
	order.NewCA = &pair
	return order, err
}

func (o *rotateOptions) run(ctx context.Context, e term.Env, order operaterotate.Rotator, key client.ObjectKey) error {
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
			return fmt.Sprintf("The authority of cluster %s is replaced after %s; what the old one signed is refused. Everyone needs a new kubeconfig: "+
				"slipway get kubeconfig %s, also with --user for persons. Programs outside of the cluster that have the old certificate need the new one.", key.Name, took, key.Name)
		},
	}
	if p.UnderWay() || p.Problem != "" {
		work.Verb = ""
	}
	return o.consent.Run(ctx, e, work)
}

// resumable wraps work that can be interrupted, and then prints that the same command continues it.
func resumable(say func(string), do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := do(ctx)
		if errors.Is(err, context.Canceled) {
			say("The rotation stands where it is; the same command continues it.")
		}
		return err
	}
}
