package extension

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools"
)

// deleteCommand returns the extension delete command.
func deleteCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete EXTENSION",
		Short:   "Delete the registration of an extension to stop calls to it",
		Example: "  slipway extension delete my-extension",
		Args:    term.ExactlyOneArgument("EXTENSION"),
	}
	flags := management.AddClusterScopedFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := flags.Connect(e)
		if err != nil {
			return err
		}
		if err := extensiontools.DeleteRegistration(cmd.Context(), c.Client, args[0]); err != nil {
			return c.Explain(err)
		}
		_, err = fmt.Fprintf(e.Out, "The registration of extension %q is removed.\n", args[0])
		return err
	}
	return cmd
}
