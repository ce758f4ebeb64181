package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

// shells returns the supported shells.
func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func checkShell(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && slices.Contains(shells(), args[0]) {
		return nil
	}
	return fault.New(fault.Invalid, "Usage", "%q needs the name of one shell: %s", cmd.CommandPath(), strings.Join(shells(), ", "))
}

// completionCommand returns the completion command, which [verbs] lists.
func completionCommand(e term.Env) *cobra.Command {
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print the completion script for bash, zsh, fish or powershell",
		Example:   "  source <(slipway completion bash)",
		Args:      checkShell,
		ValidArgs: shells(),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(e.Out, true)
			case "zsh":
				return root.GenZshCompletion(e.Out)
			case "fish":
				return root.GenFishCompletion(e.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(e.Out)
			}
			return fmt.Errorf("no completion for %q", args[0])
		},
	}
}
