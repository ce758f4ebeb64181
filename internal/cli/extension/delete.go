package extension

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools"
)

// deleteCommand returns the extension delete command, for [Command].
func deleteCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete EXTENSION",
		Short:   "Delete the registration of an extension to stop calls to it",
		Example: "  slipway extension delete my-extension",
		Args:    term.ExactlyOneArgument("EXTENSION"),
	}
	flags := management.AddClusterScopedFlags(cmd.Flags())
	cmd.RunE = flags.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		if err := extensiontools.DeleteRegistration(ctx, c.Client, args[0]); err != nil {
			return err
		}
		_, err := fmt.Fprintf(e.Out, "The registration of extension %q is removed.\n", args[0])
		return err
	})
	return cmd
}
