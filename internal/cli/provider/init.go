package provider

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/certificates"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/fault"
)

// InitCommand returns the init command of clusterctl, with additional flags such as --dry-run and --cert-manager.
// Package cli adds the command.
func InitCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Install Cluster API providers into a management cluster",
		Long: `Install providers into a management cluster. The first run also installs cluster-api and the kubeadm
bootstrap and control plane providers, unless the flags name other providers, or "-" for none. Later
runs install only the providers that the flags name. The providers that "slipway up" runs are built
in and are not installed again. If the command is interrupted, run it again to complete the
installation.`,
		Example: `  slipway init --infrastructure aws
  slipway init --infrastructure aws:v2.13.0 --dry-run
  slipway init list-images --infrastructure aws`,
		Args: cobra.NoArgs,
	}
	f := &initializeFlags{installFlags: addInstallFlags(cmd.Flags(), cmd.PersistentFlags(), "install")}
	cmd.Flags().StringVarP(&f.namespace, "target-namespace", "n", "", "namespace of the providers (default: the namespace in their components)")
	cmd.Flags().BoolVar(&f.validate, "validate", true, "check that the providers are compatible before installing them")
	cmd.Flags().StringVar(&f.certManager, "cert-manager", "", "implementation of the cert-manager API: builtin (certificate authority of Slipway; default with \"slipway up\"), install (install cert-manager), external (cert-manager is already installed; default elsewhere if its kinds exist)")
	cmd.AddCommand(initImagesCommand(e, f.Config))
	run, list := f.Run(e, f.run), cmd.Flags().Bool("list-images", false, "")
	_ = cmd.Flags().MarkHidden("list-images") // the flag of clusterctl before v1.0
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *list {
			return fault.New(fault.Invalid, "Usage", "images are listed by \"slipway init list-images\", with the same flags")
		}
		return run(cmd, args)
	}
	return cmd
}

// initializeFlags holds the flag values of init.
type initializeFlags struct {
	*installFlags
	namespace   string
	validate    bool
	certManager string
}

// run plans the installation, and prints or executes the plan.
func (f *initializeFlags) run(ctx context.Context, e term.Env, connection *management.Connection) error {
	c, err := newClient(connection)
	if err != nil {
		return err
	}
	loader, err := f.Config.Load(ctx, e)
	if err != nil {
		return err
	}
	cluster, err := install.ReadCluster(ctx, c)
	if err != nil {
		return err
	}
	choices, notes, err := install.Choose(f.Named.Named(), cluster.Installed, cluster.Builtin)
	if err != nil {
		return err
	}
	items, err := loader.LoadAll(ctx, choices, f.namespace)
	if err != nil {
		return err
	}
	settings := install.InstallOptions{SkipChecks: !f.validate, Wait: f.Wait, UpdatedAt: e.Now().UTC().Format(time.RFC3339)}
	if install.UsesCertManager(items) {
		mode, err := certificates.ParseMode(cmp.Or(f.certManager, f.usualCertManager(cluster)))
		if err != nil {
			return err
		}
		if settings.Before, settings.Builtin, err = certificates.Steps(ctx, c, mode, loader.Config); err != nil {
			return err
		}
	}
	plan, err := install.Install(items, cluster.ClusterState, settings)
	if err != nil {
		return err
	}
	if note := install.BuiltInNote(cluster.Builtin); note != "" {
		plan.Notes = append(plan.Notes, note)
	}
	plan.Notes = append(plan.Notes, notes...)
	if f.DryRun {
		return f.Format.Print(e.Out, planOutput{Steps: plan.Shown(), Notes: plan.Notes}, func(w io.Writer) error { return printPlan(w, plan) })
	}
	if err := f.Runner(e, c).Run(ctx, plan); err != nil {
		return err
	}
	if len(items) > 0 && hasNoNode(ctx, c) {
		plan.Notes = append(plan.Notes, "This management cluster has no Node, so that Deployments do not start there: \"slipway up --node\" adds one.")
	}
	if len(items) == 0 { // newly installed providers may still be starting
		if away := connection.ManagerProblem(ctx, client.ObjectKey{Namespace: connection.Namespace}); away != "" {
			plan.Notes = append(plan.Notes, away)
		}
	}
	return f.Format.Print(e.Out, planOutput{Steps: plan.Shown(), Notes: plan.Notes, Done: true}, func(w io.Writer) error { return printInstalled(w, plan, items) })
}

// hasNoNode reports whether the cluster has no nodes. It returns false if the user may not list them.
func hasNoNode(ctx context.Context, r client.Reader) bool {
	nodes := &corev1.NodeList{}
	return r.List(ctx, nodes, client.Limit(1)) == nil && len(nodes.Items) == 0
}

// usualCertManager returns the default for --cert-manager.
func (f *initializeFlags) usualCertManager(c install.ManagementCluster) string {
	if c.Embedded {
		return string(certificates.ModeBuiltin)
	}
	return string(certificates.ModeAutomatic)
}

func printInstalled(w io.Writer, plan install.Plan, items []install.LoadedProvider) error {
	for _, note := range plan.Notes {
		if _, err := fmt.Fprintln(w, note); err != nil {
			return err
		}
	}
	for _, i := range items {
		if _, err := fmt.Fprintf(w, "Installed provider %s %s in namespace %s.\n", i.Provider.Label(), i.Version, i.TargetNamespace); err != nil {
			return err
		}
	}
	if len(items) == 0 {
		_, err := fmt.Fprintln(w, "There is nothing to install.")
		return err
	}
	if !slices.ContainsFunc(plan.Steps, func(s install.Step) bool { return s.Verb == install.Await }) {
		_, err := fmt.Fprintf(w, "Their Deployments may still be starting: kubectl -n %s wait --for=condition=Available deployment --all. With --wait-providers, init waits itself.\n",
			items[len(items)-1].TargetNamespace)
		return err
	}
	return nil
}
