package extension

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
)

// Command returns the extension command, for package cli.
func Command(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "extension",
		Short: "Develop, test and inspect Runtime Extensions",
	}
	for _, verb := range []func(term.Env) *cobra.Command{
		callCommand, checkCommand, deleteCommand, exampleCommand, initCommand, listCommand, openAPICommand, recordCommand, refreshCommand,
		replayCommand, runCommand, updateCommand,
	} {
		cmd.AddCommand(verb(e))
	}
	term.MarkGroup(cmd)
	return cmd
}
