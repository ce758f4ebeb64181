package provider

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
)

// AddDeleteProvider extends the delete command, which has the subcommand "cluster", with the flags of clusterctl to
// delete providers. Without flags the command prints its help. Package cli calls it for the delete command (groups.go).
func AddDeleteProvider(e term.Env, cmd *cobra.Command) {
	f := &deleteProviderFlags{connection: management.AddClusterScopedFlags(cmd.Flags()), named: addProviderFlags(cmd.Flags(), "delete")}
	cmd.Flags().String("config", "", "accepted for compatibility with clusterctl; the installed providers determine the objects to delete")
	cmd.Flags().BoolVar(&f.all, "all", false, "delete all providers")
	cmd.Flags().BoolVar(&f.deletion.Namespaces, "include-namespace", false, "delete the namespaces of the providers and everything in them")
	cmd.Flags().BoolVar(&f.deletion.CRDs, "include-crd", false, "delete the CRDs of the providers and all their objects")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the steps and change nothing")
	f.format = term.AddOutputFlag(cmd.Flags())
	help := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().NFlag() == 0 {
			return help(cmd, args)
		}
		c, err := f.connection.Connect(e)
		if err != nil {
			return err
		}
		return c.Explain(f.run(cmd.Context(), e, c))
	}
}

// deleteProviderFlags holds the flag values of [AddDeleteProvider].
type deleteProviderFlags struct {
	connection *management.Flags
	named      *providerFlags
	all        bool
	deletion   install.DeletionOptions
	dryRun     bool
	format     *term.Format
}

func (f *deleteProviderFlags) run(ctx context.Context, e term.Env, connection *management.Connection) error {
	c, err := newClient(connection)
	if err != nil {
		return err
	}
	cluster, err := install.ReadCluster(ctx, c)
	if err != nil {
		return err
	}
	named, err := install.SelectForDeletion(f.named.Named(), f.all, cluster.Installed, cluster.Builtin)
	if err != nil {
		return err
	}
	kinds, err := readKinds(connection)
	if err != nil {
		return err
	}
	found, err := install.Objects(ctx, c, kinds, named)
	if err != nil {
		return err
	}
	plan := install.Uninstall(found, f.deletion)
	if f.dryRun {
		return f.format.Print(e.Out, planOutput{Steps: plan.Shown(), Notes: plan.Notes}, func(w io.Writer) error { return printPlan(w, plan) })
	}
	if err := (install.Runner{Client: c, Progress: term.Reporter(e)}).Run(ctx, plan); err != nil {
		return err
	}
	return f.format.Print(e.Out, planOutput{Steps: plan.Shown(), Notes: plan.Notes, Done: true}, func(w io.Writer) error { return printDeleted(w, plan, found) })
}

func printDeleted(w io.Writer, plan install.Plan, deleted []install.InstalledProvider) error {
	for _, note := range plan.Notes {
		if _, err := fmt.Fprintln(w, note); err != nil {
			return err
		}
	}
	for _, p := range deleted {
		if _, err := fmt.Fprintf(w, "Deleted provider %s %s from namespace %s.\n", p.Label(), p.Current(), p.Namespace); err != nil {
			return err
		}
	}
	if len(deleted) == 0 {
		_, err := fmt.Fprintln(w, "No provider is installed; there is nothing to delete.")
		return err
	}
	return nil
}
