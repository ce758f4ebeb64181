package provider

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
)

// GenerateYAMLCommand returns the generate yaml command of clusterctl, for package cli.
func GenerateYAMLCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "yaml",
		Short: "Substitute the variables in a template",
		Long: `Substitute variables such as ${NAME} and ${NAME:=default} in any text. Values come from the
environment, then from the clusterctl configuration file. All variables without a value are reported
together.`,
		Example: "  slipway generate yaml --from template.yaml > manifest.yaml\n  slipway generate yaml --from template.yaml --list-variables",
		Args:    cobra.NoArgs,
	}
	configuration := term.AddConfigFlags(cmd.Flags())
	from := cmd.Flags().String("from", "-", "path or https URL of the template; - reads standard input")
	list := cmd.Flags().Bool("list-variables", false, "list the variables of the template and exit")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loader, err := configuration.Load(cmd.Context(), e)
		if err != nil {
			return err
		}
		text, err := template.Source{In: e.In, Variable: loader.Config.Variable}.Read(cmd.Context(), *from)
		if err != nil {
			return err
		}
		if *list {
			variables, err := repository.Envsubst{}.Variables(text)
			if err != nil {
				return err
			}
			return term.PrintVariables(e.Out, variables)
		}
		out, err := repository.Envsubst{}.Process(text, loader.Config.Variable)
		if err != nil {
			return err
		}
		return term.WriteResult(e, "", out)
	}
	return cmd
}
