package extension

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// checkCommand returns the extension check command, for [Command].
func checkCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "List the extensions that this version of Slipway cannot call",
		Long: `Compare the handlers of all extensions in a management cluster with the hooks that this binary
supports. Run the command with a new version of Slipway before you upgrade the management cluster to
it. An extension that serves an unsupported hook, or an unsupported version of a hook, blocks the
operations that call the extension; in this case the command fails. Handlers with deprecated
versions are listed too.`,
		Example: "  slipway extension check",
		Args:    cobra.NoArgs,
	}
	flags := management.AddClusterScopedFlags(cmd.Flags())
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = flags.RunE(e, func(ctx context.Context, c *management.Connection, _ []string) error {
		configs, err := extensiontools.ListExtensions(ctx, c.Client)
		if err != nil {
			return err
		}
		report := extensiontools.CheckCompatibility(hooks.Default(), configs)
		if err := format.Print(e.Out, report, func(w io.Writer) error { return checkText(w, report, len(configs)) }); err != nil {
			return err
		}
		return report.Err()
	})
	return cmd
}

func checkText(w io.Writer, r extensiontools.CompatibilityReport, extensions int) error {
	var err error
	for _, part := range []struct {
		head  string
		lines []string
	}{
		{"This version of slipway does not support the hooks of:", r.Broken},
		{"These versions of hooks are deprecated:", r.Deprecated},
	} {
		if len(part.lines) == 0 {
			continue
		}
		_, _ = fmt.Fprintln(w, part.head)
		for _, line := range part.lines {
			_, err = fmt.Fprintln(w, "  "+line)
		}
	}
	if len(r.Broken) == 0 {
		_, err = fmt.Fprintf(w, "This version of slipway can call every extension (%d).\n", extensions)
	}
	return err
}
