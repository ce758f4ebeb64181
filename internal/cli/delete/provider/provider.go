// Package provider implements the deletion of providers in the delete command, as in clusterctl. It reads the installed
// providers, computes a plan (package installation), and executes or prints it.
package provider

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/output"
	"github.com/slipwayhq/slipway/internal/cli/providers"
	"github.com/slipwayhq/slipway/internal/cli/screen"
	"github.com/slipwayhq/slipway/internal/clusterctl/installation"
	"github.com/slipwayhq/slipway/internal/clusterctl/selection"
)

// Add extends cmd to delete providers if it has flags. Without flags cmd is unchanged.
func Add(e env.Env, cmd *cobra.Command) {
	f := &flags{connection: management.AddClusterScoped(cmd.Flags()), named: providers.Add(cmd.Flags(), "delete")}
	cmd.Flags().String("config", "", "accepted as clusterctl does; what is installed says what to delete")
	cmd.Flags().BoolVar(&f.all, "all", false, "delete all providers")
	cmd.Flags().BoolVar(&f.deletion.Namespaces, "include-namespace", false, "delete the namespaces of the providers, with everything in them")
	cmd.Flags().BoolVar(&f.deletion.CRDs, "include-crd", false, "delete the CRDs of the providers, with all their objects")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the steps and do nothing")
	f.format = output.Flag(cmd.Flags())
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

type flags struct {
	connection *management.Flags
	named      *providers.Flags
	all        bool
	deletion   installation.Deletion
	dryRun     bool
	format     *output.Format
}

func (f *flags) run(ctx context.Context, e env.Env, connection *management.Connection) error {
	c, err := providers.Client(connection)
	if err != nil {
		return err
	}
	cluster, err := selection.ReadCluster(ctx, c)
	if err != nil {
		return err
	}
	named, err := installation.SelectForDeletion(f.named.Named(), f.all, cluster.Installed, cluster.Builtin)
	if err != nil {
		return err
	}
	kinds, err := providers.Kinds(connection)
	if err != nil {
		return err
	}
	found, err := installation.Objects(ctx, c, kinds, named)
	if err != nil {
		return err
	}
	plan := installation.Uninstall(found, f.deletion)
	if f.dryRun {
		return f.format.Print(e.Out, providers.Shown{Steps: plan.Shown(), Notes: plan.Notes}, func(w io.Writer) error { return providers.PrintPlan(w, plan) })
	}
	if err := (installation.Runner{Client: c, Progress: screen.Reporter(e)}).Run(ctx, plan); err != nil {
		return err
	}
	return f.format.Print(e.Out, providers.Shown{Steps: plan.Shown(), Notes: plan.Notes, Done: true}, func(w io.Writer) error { return said(w, plan, found) })
}

func said(w io.Writer, plan installation.Plan, deleted []installation.Installed) error {
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
