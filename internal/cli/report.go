package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Exit codes. Scripts depend on them; docs/cli.md lists them (document.go).
const (
	exitOK          = 0
	exitError       = 1   // something went wrong; retrying may help
	exitInvalid     = 2   // the command line or the input must be changed
	exitUnreachable = 3   // a cluster or a daemon is unreachable
	exitNotFound    = 4   // an object does not exist
	exitBug         = 70  // a bug in slipway
	exitInterrupted = 130 // by the user
)

// report prints err after the program name, and returns the exit code. [Run] calls it at the end of every command.
func report(w io.Writer, program string, err error) int {
	var printed interface {
		error
		ExitCode() int
	}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &printed): // the exit code of a child process, or of a result that was already printed
		return printed.ExitCode()
	case errors.Is(err, context.Canceled):
		_, _ = fmt.Fprintln(w, program+": interrupted")
		return exitInterrupted
	}
	exit, hint := classify(err)
	_, _ = fmt.Fprintf(w, "%s: %v\n", program, fault.UserMessage(err))
	if hint != "" {
		_, _ = fmt.Fprintf(w, "  %s\n", hint)
	}
	return exit
}

func classify(err error) (exit int, hint string) {
	switch fault.KindOf(err) {
	case fault.Invalid:
		return exitInvalid, ""
	case fault.Unreachable:
		if fault.As(err) != nil {
			return exitUnreachable, "" // a fault already contains the remedy
		}
		return exitUnreachable, "see \"slipway status\" for what runs on this host"
	case fault.Gone:
		return exitNotFound, ""
	case fault.Bug:
		return exitBug, "this is a bug in slipway; please report it with the command that you ran"
	}
	return exitError, ""
}

// usageError converts a flag error to a fault that refers to the help. cobra calls it for flags, and [Run] for unknown
// commands.
func usageError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if mistaken, similar, found := strings.Cut(text, "\n\nDid you mean this?\n"); found {
		text = mistaken + "; did you mean " + strings.Join(strings.Fields(similar), " or ") + "?"
	}
	return fault.New(fault.Invalid, "Usage", "%s; see %q", text, cmd.CommandPath()+" --help").From(err)
}
