package provider

import (
	"fmt"
	"io"
	"path"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
)

// repositoryRow is a provider in the JSON and YAML output of clusterctl, whose field names must not change.
type repositoryRow struct {
	File         string
	Name         string
	ProviderType string
	URL          string
}

// ConfigCommand returns the config command of clusterctl, for package cli.
func ConfigCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show the provider configuration"}
	cmd.AddCommand(repositories(e))
	term.MarkGroup(cmd)
	return cmd
}

// repositories returns the "config repositories" command.
func repositories(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "repositories",
		Short:   "List the installable providers and the locations of their releases",
		Example: "  slipway config repositories\n  slipway config repositories -o yaml",
		Args:    cobra.NoArgs,
	}
	configuration := term.AddConfigFlags(cmd.Flags())
	format := term.AddOutputFlag(cmd.Flags(), "text")
	_ = format.Set("text") // clusterctl shows it as the default
	cmd.Flags().Lookup("output").DefValue = format.String()
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loader, err := configuration.Load(cmd.Context(), e)
		if err != nil {
			return err
		}
		var rows []repositoryRow
		for _, p := range loader.Config.Providers() {
			url, name := split(p.URL)
			rows = append(rows, repositoryRow{Name: p.Name, ProviderType: string(p.Type), URL: url, File: name})
		}
		return format.Print(e.Out, rows, func(w io.Writer) error { return configText(w, rows) })
	}
	return cmd
}

// split splits an address before the file name.
func split(url string) (address, file string) {
	file = path.Base(url)
	return strings.TrimSuffix(url, file), file
}

func configText(w io.Writer, rows []repositoryRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NAME\tTYPE\tURL\tFILE")
	for _, r := range rows {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Name, r.ProviderType, r.URL, r.File)
	}
	return t.Flush()
}
