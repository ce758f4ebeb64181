package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/term"
)

//go:generate go test -run TestDocument -update .

// Document returns docs/cli.md: all commands that are not hidden, with their flags.
func Document(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# The command line\n\n" +
		"This page is made from the command itself (`go generate ./internal/cli`); a test compares the two.\n\n" +
		"Results go to standard output, progress and messages to standard error. Exit codes: 0 success; 1 something went wrong, " +
		"trying again may help; 2 the command line or the input has to change; 3 a cluster or Docker does not answer; " +
		"4 what was named does not exist; 70 a mistake in slipway; 130 interrupted.\n\n")
	for _, c := range leaves(root) {
		fmt.Fprintf(&b, "- [%s](#%s): %s\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
	}
	for _, c := range leaves(root) {
		writeSection(&b, c)
	}
	return b.String()
}

// leaves returns the executable commands, sorted by name: commands without subcommands, and commands that also accept
// arguments, such as "restore FILE".
func leaves(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	if !c.HasAvailableSubCommands() || term.IsExecutable(c) {
		out = append(out, c)
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			out = append(out, leaves(sub)...)
		}
	}
	return out
}

func writeSection(b *strings.Builder, c *cobra.Command) {
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```\n%s\n```\n", c.CommandPath(), long, c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindent(c.Example))
	}
	var rows []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			rows = append(rows, flagRow(f))
		}
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n| Flag | Meaning |\n|---|---|\n%s\n", strings.Join(rows, "\n"))
	}
}

func flagRow(f *pflag.Flag) string {
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	value, usage := pflag.UnquoteUsage(f)
	if word, ok := map[string]string{"string": "VALUE", "strings": "LIST", "int": "N", "int32": "N", "float32": "N", "duration": "DURATION", "mapStringBool": "LIST"}[value]; ok {
		value = word
	}
	if value != "" {
		name += " " + value
	}
	if !isUnsetDefault(f.DefValue) {
		usage += " (default " + f.DefValue + ")"
	}
	return "| " + name + " | " + strings.NewReplacer("|", "\\|", "<", "&lt;", "\n", "<br>").Replace(usage) + " |"
}

func isUnsetDefault(value string) bool {
	return value == "" || value == "false" || value == "[]"
}

func unindent(example string) string {
	var lines []string
	for line := range strings.Lines(example) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), "  "))
	}
	return strings.Join(lines, "\n")
}
