package provider

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/certificates"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/providerupgrade"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/extensiontools"
)

// UpgradePlanCommand returns the upgrade plan command of clusterctl, for package cli.
func UpgradePlanCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "List the available upgrades of the providers",
		Long: `List, for each contract, the newest version of every installed provider and the planned action for
cert-manager. Nothing is changed.`,
		Example: "  slipway upgrade plan",
		Args:    cobra.NoArgs,
	}
	connection := management.AddClusterScopedFlags(cmd.Flags())
	config := term.AddConfigFlags(cmd.Flags())
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, _ []string) error {
		found, err := readUpgradePlan(ctx, e, c, config)
		if err != nil {
			return err
		}
		return format.Print(e.Out, found, func(w io.Writer) error { return printUpgradePlan(w, found) })
	})
	return cmd
}

// upgradePlanShown is the structured output of "upgrade plan". readUpgradePlan fills it. Scripts depend on the field
// names.
type upgradePlanShown struct {
	Builtin     string                     `json:"builtIn,omitempty"`
	CertManager certificates.Upgrade       `json:"certManager"`
	Offers      []providerupgrade.Upgrades `json:"offers"`
	// Extensions are the extensions that this version of slipway cannot call, or that use deprecated hooks.
	Extensions extensiontools.CompatibilityReport `json:"extensions"`
}

func readUpgradePlan(ctx context.Context, e term.Env, connection *management.Connection, config *term.ConfigFlags) (upgradePlanShown, error) {
	c, err := newClient(connection)
	if err != nil {
		return upgradePlanShown{}, err
	}
	loader, err := config.Load(ctx, e)
	if err != nil {
		return upgradePlanShown{}, err
	}
	cluster, err := install.ReadCluster(ctx, c)
	if err != nil {
		return upgradePlanShown{}, err
	}
	out := upgradePlanShown{Builtin: install.BuiltInNote(cluster.Builtin)}
	kinds, err := readKinds(connection)
	if err != nil {
		return out, err
	}
	if out.CertManager, err = certificates.PlanUpgrade(ctx, c, kinds, loader.Config); err != nil {
		return out, err
	}
	if out.Extensions, err = extensiontools.ReadCompatibility(ctx, c); err != nil {
		return out, err
	}
	if len(cluster.Installed) > 0 {
		out.Offers, err = providerupgrade.AvailableUpgrades(ctx, cluster.Installed, cluster.Contract, loader.Latest)
	}
	return out, err
}

func printUpgradePlan(w io.Writer, s upgradePlanShown) error {
	if s.Builtin != "" {
		_, _ = fmt.Fprintln(w, s.Builtin, "They are upgraded with the slipway binary.")
	}
	_, _ = fmt.Fprintln(w, s.CertManager)
	for _, handler := range s.Extensions.Broken {
		_, _ = fmt.Fprintf(w, "Extension handler that this version of slipway cannot call: %s. The core is not upgraded while it is registered.\n", handler)
	}
	for _, handler := range s.Extensions.Deprecated {
		_, _ = fmt.Fprintf(w, "Extension handler of a deprecated hook: %s.\n", handler)
	}
	if len(s.Offers) == 0 {
		_, err := fmt.Fprintln(w, "No provider is installed; `slipway init` installs some.")
		return err
	}
	for _, o := range s.Offers {
		_, _ = fmt.Fprintf(w, "\nLatest releases for the contract %s:\n\n", o.Contract)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(t, "NAME\tNAMESPACE\tTYPE\tCURRENT VERSION\tNEXT VERSION")
		for _, p := range o.Providers {
			next := p.NextVersion
			switch {
			case p.Unknown != "":
				next = "Unknown"
			case next == "":
				next = "Already up to date"
			}
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", p.Label(), p.Namespace, p.Type, p.Version, next)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		unknown := 0
		for _, p := range o.Providers {
			if p.Unknown != "" {
				unknown++
				_, _ = fmt.Fprintf(w, "\nThe releases of provider %s cannot be read: %s.\n", p.Label(), p.Unknown)
			}
		}
		switch {
		case !o.Upgrades && unknown > 0:
			_, _ = fmt.Fprintf(w, "\nAll other providers are up to date for the contract %s.\n", o.Contract)
		case !o.Upgrades:
			_, _ = fmt.Fprintf(w, "\nAll providers are up to date for the contract %s.\n", o.Contract)
		case o.Contract != repository.Contract:
			_, _ = fmt.Fprintf(w, "\nThis version of slipway upgrades to the contract %s alone.\n", repository.Contract)
		default:
			_, _ = fmt.Fprintf(w, "\nUpgrade with:\n\n  slipway upgrade apply --contract %s\n", o.Contract)
		}
	}
	return nil
}
