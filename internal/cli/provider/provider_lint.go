package provider

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/lint"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Command returns the provider command, for package cli.
func Command(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "Check provider releases",
	}
	cmd.AddCommand(lintCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// reasonBroken is the reason of the fault for a release that breaks mandatory rules.
const reasonBroken = "ContractBroken"

// lintResult is the structured output of the command. Scripts depend on the field names.
type lintResult struct {
	Releases int            `json:"releases"`
	Findings []lint.Finding `json:"findings"`
}

// lintCommand returns the provider lint command.
func lintCommand(e term.Env) *cobra.Command {
	var strict, rules bool
	cmd := &cobra.Command{
		Use:   "lint DIR",
		Short: "Check provider releases against the clusterctl contract",
		Long: `Check every provider release in a directory, in the layout LABEL/VERSION of a local repository,
against the clusterctl contract and the contracts of the API kinds. Each finding names its rule. The
exit code is 2 if a mandatory rule is violated.`,
		Example: `  slipway provider lint dist
  slipway provider lint dist/infrastructure-demo/v1.0.0 -o json
  slipway provider lint --rules`,
		Args: func(cmd *cobra.Command, args []string) error {
			if rules {
				return cobra.NoArgs(cmd, args)
			}
			return term.ExactlyOneArgument("DIR")(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "also fail if a recommendation is not followed")
	cmd.Flags().BoolVar(&rules, "rules", false, "print the rules and exit")
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if rules {
			all := lint.Rules()
			return format.Print(e.Out, all, func(w io.Writer) error { return ruleText(w, all) })
		}
		n, findings, err := lint.Dir(args[0])
		if err != nil {
			return err
		}
		r := lintResult{Releases: n, Findings: append([]lint.Finding{}, findings...)}
		if err := format.Print(e.Out, r, func(w io.Writer) error { return lintText(w, r) }); err != nil {
			return err
		}
		broken := lint.Mandatory(findings)
		if strict {
			broken = len(findings)
		}
		if broken > 0 {
			return fault.New(fault.Invalid, reasonBroken, "rules are broken in %d places: correct the release, then check it again", broken)
		}
		return nil
	}
	return cmd
}

func lintText(w io.Writer, r lintResult) error {
	if len(r.Findings) == 0 {
		_, err := fmt.Fprintf(w, "No rule is broken in %d releases.\n", r.Releases)
		return err
	}
	for _, f := range r.Findings {
		level := "advice"
		if f.Mandatory {
			level = "broken"
		}
		where := f.Release
		if f.File != "" {
			where += "/" + f.File
		}
		if f.Object != "" {
			where += " " + f.Object
		}
		if _, err := fmt.Fprintf(w, "%s  %s: %s (%s)\n", level, where, f.Message, f.Rule); err != nil {
			return err
		}
	}
	return nil
}

func ruleText(w io.Writer, rules []lint.Rule) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "RULE\tMANDATORY\tSAYS")
	for _, r := range rules {
		_, _ = fmt.Fprintf(t, "%s\t%v\t%s\n", r.Name, r.Mandatory, r.Description)
	}
	return t.Flush()
}
