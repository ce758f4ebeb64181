package extension

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools"
)

// exampleCommand returns the extension example command, for [Command].
func exampleCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "example [HOOK]",
		Short: "Print an example request of a hook",
		Long: `Print an example request of a hook with all fields that a management cluster sends, as YAML unless
-o is set. Edit the fields that your handler uses, and send the request with "slipway extension
call" or in a test. Without HOOK, list the available hooks.`,
		Example: `  slipway extension example BeforeClusterDelete > testdata/before-cluster-delete.yaml
  slipway extension example before-cluster-delete | slipway extension call my-handler -f -`,
		Args: cobra.MaximumNArgs(1),
	}
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			rows := exampleRows()
			return format.Print(e.Out, rows, func(w io.Writer) error { return exampleText(w, rows) })
		}
		request, err := extensiontools.GetExample(args[0])
		if err != nil {
			return err
		}
		document, err := request.Document(format.String() == "json")
		if err != nil {
			return err
		}
		_, err = e.Out.Write(document)
		return err
	}
	return cmd
}

// exampleRow is a hook in structured output. Scripts depend on the field names.
type exampleRow struct {
	Hook       string `json:"hook"`
	APIVersion string `json:"apiVersion"`
	// Blocking is true if a handler can block the caller.
	Blocking bool   `json:"blocking"`
	Summary  string `json:"summary"`
}

func exampleRows() []exampleRow {
	var out []exampleRow
	for _, h := range extensiontools.ExampleHooks() {
		out = append(out, exampleRow{h.ID.Hook, h.APIVersion(), h.Blocking(), h.Summary})
	}
	return out
}

func exampleText(w io.Writer, rows []exampleRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "HOOK\tBLOCKS\tSUMMARY")
	for _, r := range rows {
		blocks := "no"
		if r.Blocking {
			blocks = "yes"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", r.Hook, blocks, r.Summary)
	}
	return t.Flush()
}
