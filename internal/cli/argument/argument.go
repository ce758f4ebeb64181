package argument

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/fault"
)

// One demands exactly one argument, called name.
func One(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		if len(args) == 0 {
			return wrong(cmd, "\"%s\" needs one argument, %s", name)
		}
		return wrong(cmd, "\"%s\" takes one argument, not %s", strings.Join(args, " "))
	}
}

// Group makes cmd a verb that only groups others: alone it prints its help, with anything else it lists what there is.
func Group(cmd *cobra.Command) {
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
			return wrong(cmd, "\"%s\" takes flags alone, not %s", strings.Join(args, " "))
		}
		return wrong(cmd, "\"%s\" knows: %s", strings.Join(names, ", "))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// groupAnnotation marks the commands of [Group].
const groupAnnotation = "slipway.dev/group"

// IsVerb reports whether a command does something itself, also where there are verbs below it.
func IsVerb(cmd *cobra.Command) bool {
	_, group := cmd.Annotations[groupAnnotation]
	return cmd.Runnable() && !group
}

// AlsoVerb notes that a command of [Group] does something itself, too.
func AlsoVerb(cmd *cobra.Command) { delete(cmd.Annotations, groupAnnotation) }

// Removed is a verb that clusterctl had once: it answers what to do instead.
func Removed(name, answer string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return fault.New(fault.Invalid, "VerbRemoved", "%s", answer) },
	}
}

func wrong(cmd *cobra.Command, message, detail string) error {
	return fault.New(fault.Invalid, "Usage", message+"; see \"%s --help\"", cmd.CommandPath(), detail, cmd.CommandPath())
}
