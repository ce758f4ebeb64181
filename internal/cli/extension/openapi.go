package extension

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/hook/openapi"
)

// openAPICommand returns the extension openapi command, for [Command].
func openAPICommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "openapi",
		Short: "Print the OpenAPI document of all hooks",
		Long: `Print the OpenAPI 3.0 document of all hooks and their versions, as YAML unless -o is set; -o html
prints one page for reading. A management cluster serves the same document at /runtime-sdk/ next to
its webhooks.`,
		Example: "  slipway extension openapi > runtime-sdk-openapi.yaml\n  slipway extension openapi -o html > runtime-sdk.html",
		Args:    cobra.NoArgs,
	}
	format := term.AddOutputFlag(cmd.Flags(), "html")
	cmd.RunE = func(*cobra.Command, []string) error {
		doc, err := openapi.Document(buildinfo.Version())
		if err != nil {
			return err
		}
		form := openapi.YAML
		switch format.String() {
		case "json":
			form = openapi.JSON
		case "html":
			form = openapi.Page
		}
		data, err := form(doc)
		if err != nil {
			return err
		}
		_, err = e.Out.Write(data)
		return err
	}
	return cmd
}
