package term

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/fault"
)

// ExactlyOneArgument requires exactly one argument with the given name. Commands set it as cobra.Command.Args.
func ExactlyOneArgument(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		if len(args) == 0 {
			return usageError(cmd, "\"%s\" needs one argument, %s", name)
		}
		return usageError(cmd, "\"%s\" takes one argument, not %s", strings.Join(args, " "))
	}
}

// MarkGroup makes cmd a command that only groups subcommands. Without arguments it prints its help, with unknown ones
// it lists the subcommands. If there are none, as below `clusterctl delete`, the error refers to the flags.
func MarkGroup(cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[groupAnnotation] = ""
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		if len(names) == 0 {
			return usageError(cmd, "\"%s\" takes flags alone, not %s", strings.Join(args, " "))
		}
		return usageError(cmd, "the subcommands of \"%s\" are: %s", strings.Join(names, ", "))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// groupAnnotation marks the commands of [MarkGroup].
const groupAnnotation = "slipway.dev/group"

// IsExecutable reports whether a command is executable, even if it has subcommands. The generator of docs/cli.md calls
// it (cli/document.go).
func IsExecutable(cmd *cobra.Command) bool {
	_, group := cmd.Annotations[groupAnnotation]
	return cmd.Runnable() && !group
}

// MarkRunnable marks a command of [MarkGroup] as executable. It is for `slipway delete`, which deletes providers if it
// has flags.
func MarkRunnable(cmd *cobra.Command) { delete(cmd.Annotations, groupAnnotation) }

// RemovedCommand returns a hidden command in the place of one that clusterctl has removed. Its error names the
// alternative. Package cli/cluster has them, for example for "topology" and "rollout undo".
func RemovedCommand(name, answer string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return fault.New(fault.Invalid, "VerbRemoved", "%s", answer) },
	}
}

// usageError returns an error that refers to the help. The message has two %s: the path of the command, and the detail.
func usageError(cmd *cobra.Command, message, detail string) error {
	return fault.New(fault.Invalid, "Usage", message+"; see \"%s --help\"", cmd.CommandPath(), detail, cmd.CommandPath())
}
