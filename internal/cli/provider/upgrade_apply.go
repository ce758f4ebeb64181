package provider

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/certificates"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/providerupgrade"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// UpgradeApplyCommand returns the upgrade apply command of clusterctl, with additional flags such as --dry-run and
// --rollback. Package cli adds the command.
func UpgradeApplyCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Upgrade the providers of a management cluster",
		Long: `Upgrade the providers that the flags name, or with --contract all providers to their newest
versions. Namespaces, CRDs and their objects are preserved. Before the upgrade, the command lists
changes by other clients that the new version overwrites. With --wait-providers, the previous
versions are reinstalled if the new versions do not become available. If the command is interrupted,
run it again to complete the upgrade.`,
		Example: `  slipway upgrade apply --contract v1beta2 --dry-run
  slipway upgrade apply --infrastructure aws:v2.13.0 --wait-providers`,
		Args: cobra.NoArgs,
	}
	f := &upgradeApplyFlags{installFlags: addInstallFlags(cmd.Flags(), cmd.Flags(), "upgrade")}
	cmd.Flags().StringVar(&f.contract, "contract", "", "upgrade all providers to the newest versions with this contract, for example v1beta2")
	cmd.Flags().BoolVar(&f.rollback, "rollback", true, "with --wait-providers: reinstall the previous versions if the new versions do not become available")
	cmd.RunE = f.Run(e, f.run)
	return cmd
}

// upgradeApplyFlags holds the flag values of "upgrade apply".
type upgradeApplyFlags struct {
	*installFlags
	contract string
	rollback bool
}

// shown is the structured output of "upgrade apply". Scripts depend on the field names.
type shown struct {
	planOutput
	CertManager    certificates.Upgrade            `json:"certManager"`
	Customisations []providerupgrade.Customisation `json:"customisations,omitempty"`
}

// run reads everything, computes the plans (upgrade_apply_read.go), and executes or prints the plan.
func (f *upgradeApplyFlags) run(ctx context.Context, e term.Env, connection *management.Connection) error {
	c, err := newClient(connection)
	if err != nil {
		return err
	}
	w := upgradeRun{flags: f, env: e, client: c}
	if w.loader, err = f.Config.Load(ctx, e); err != nil {
		return err
	}
	if w.kinds, err = readKinds(connection); err != nil {
		return err
	}
	if err := w.read(ctx); err != nil {
		return err
	}
	if f.DryRun {
		return f.Format.Print(e.Out, w.shown(false), w.print)
	}
	if err := w.warn(); err != nil {
		return err
	}
	if err := w.carryOut(ctx); err != nil {
		return err
	}
	return f.Format.Print(e.Out, w.shown(true), w.printResult)
}

// shown returns the structured output; done is true after the upgrade.
func (w *upgradeRun) shown(done bool) shown {
	return shown{
		planOutput:  planOutput{Steps: w.plan.Shown(), Notes: w.plan.Notes, Done: done},
		CertManager: w.certManager, Customisations: w.customisations,
	}
}

// print prints a dry run.
func (w *upgradeRun) print(out io.Writer) error {
	for _, c := range w.customisations {
		if _, err := fmt.Fprintf(out, "%s.\n", c); err != nil {
			return err
		}
	}
	return printPlan(out, w.plan)
}

// warn lists the customizations that will be lost on standard error.
func (w *upgradeRun) warn() error {
	for _, c := range w.customisations {
		if c.Preserved {
			continue
		}
		if _, err := fmt.Fprintf(w.env.Err, "%s.\n", c); err != nil {
			return err
		}
	}
	return nil
}

func (w *upgradeRun) printResult(out io.Writer) error {
	lines := append([]string{}, w.plan.Notes...)
	for _, c := range w.changes {
		lines = append(lines, changeText(c))
	}
	if len(w.changes) == 0 {
		lines = append(lines, "There is nothing to upgrade.")
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// changeText describes the change of a provider. The requested version may also be older or the same.
func changeText(c providerupgrade.Change) string {
	switch {
	case version.IsOlder(c.To.Version, c.From.Version):
		return fmt.Sprintf("Downgraded provider %s in namespace %s from %s to %s.", c.From.Label(), c.From.Namespace, c.From.Version, c.To.Version)
	case c.From.Version == c.To.Version:
		return fmt.Sprintf("Reinstalled provider %s in namespace %s in version %s.", c.From.Label(), c.From.Namespace, c.To.Version)
	}
	return fmt.Sprintf("Upgraded provider %s in namespace %s from %s to %s.", c.From.Label(), c.From.Namespace, c.From.Version, c.To.Version)
}

// carryOut executes the plan, and rolls back if providers do not become available.
func (w *upgradeRun) carryOut(ctx context.Context) error {
	runner := w.flags.Runner(w.env, w.client)
	err := runner.Run(ctx, w.plan)
	if err == nil || !w.flags.rollback || !install.HasReason(err, install.ReasonUnavailable) {
		return err
	}
	if w.noRollbackReason != "" {
		return fault.New(fault.Invalid, reasonUpgrade, "%s; the former versions are not installed again, because %s", fault.UserMessage(err), w.noRollbackReason).From(err)
	}
	_, _ = fmt.Fprintf(w.env.Err, "The providers do not become available: %s. Installing the former versions again.\n", fault.UserMessage(err))
	if back := runner.Run(ctx, w.back); back != nil {
		return fault.New(fault.KindOf(back), reasonUpgrade, "the providers do not become available (%s), and the former versions are not installed again: %s; name them with `slipway upgrade apply` to install them",
			fault.UserMessage(err), fault.UserMessage(back)).From(back)
	}
	return fault.New(fault.Invalid, reasonUpgrade, "the providers did not become available, and their former versions are installed again: %s", fault.UserMessage(err)).From(err)
}

// reasonUpgrade means that an upgrade failed.
const reasonUpgrade = "UpgradeFailed"
