package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/term"
)

//go:generate go test -run TestDocument -update .

// minCommonCommands is the number of commands from which a flag is documented once for all of them.
const minCommonCommands = 10

// documentIntroduction is the beginning of the page. The table must agree with the exit codes in report.go.
const documentIntroduction = `# The command line

This page is generated from the help of the commands with ` + "`go generate ./internal/cli`" + `. A test checks that it is up to date.

Commands write results to standard output, and progress and messages to standard error. The exit codes are:

| Exit code | Meaning |
|---|---|
| 0 | Success |
| 1 | Failure; a retry can succeed |
| 2 | Invalid command line or input; correct it before you retry |
| 3 | A cluster or Docker is unreachable |
| 4 | A named object does not exist |
| 70 | A bug in Slipway |
| 130 | Interrupted |

Commands with other exit codes describe them in their section.
`

const commonFlagsIntroduction = `
## Common flags

Many commands, including most commands that connect to a management cluster, accept some or all of these flags. The section of
each command lists the common flags that it accepts.
`

// commandReference returns the text of docs/cli.md: all commands that are not hidden, with their flags. TestDocument
// calls it to compare the page, or with -update to write it.
func commandReference(root *cobra.Command) string {
	d := newDocument(root)
	d.text.WriteString(documentIntroduction + commonFlagsIntroduction)
	d.writeTable(d.commonFlags())
	d.text.WriteString("\n## Commands\n\n")
	for _, c := range d.commands {
		fmt.Fprintf(&d.text, "- %s: %s\n", link(c), c.Short)
	}
	for _, c := range d.commands {
		d.writeSection(c)
	}
	return d.text.String()
}

// document is the page while it is written.
type document struct {
	text     strings.Builder
	commands []*cobra.Command
	// uses is the number of commands with each flag.
	uses map[flagKey]int
}

// flagKey identifies flags with the same documentation.
type flagKey struct{ name, shorthand, valueType, defaultValue, usage string }

func newDocument(root *cobra.Command) *document {
	d := &document{commands: leaves(root), uses: map[flagKey]int{}}
	for _, c := range d.commands {
		for _, f := range visibleFlags(c) {
			d.uses[keyOf(f)]++
		}
	}
	return d
}

func keyOf(f *pflag.Flag) flagKey {
	return flagKey{name: f.Name, shorthand: f.Shorthand, valueType: f.Value.Type(), defaultValue: f.DefValue, usage: f.Usage}
}

func (d *document) isCommon(f *pflag.Flag) bool { return d.uses[keyOf(f)] >= minCommonCommands }

// commonFlags returns the common flags of all commands, sorted by name.
func (d *document) commonFlags() []*pflag.Flag {
	found := map[flagKey]*pflag.Flag{}
	for _, c := range d.commands {
		for _, f := range visibleFlags(c) {
			if d.isCommon(f) {
				found[keyOf(f)] = f
			}
		}
	}
	var out []*pflag.Flag
	for _, f := range found {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *pflag.Flag) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Usage, b.Usage)) })
	return out
}

// aliased returns the command that c is an alias of, or nil: a command with the same help and flags at a shorter path,
// such as "rollout pause" for "alpha rollout pause".
func (d *document) aliased(c *cobra.Command) *cobra.Command {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	for _, other := range d.commands {
		_, otherPath, _ := strings.Cut(other.CommandPath(), " ")
		if strings.HasSuffix(path, " "+otherPath) && c.Short == other.Short && c.Long == other.Long && slices.Equal(flagKeys(c), flagKeys(other)) {
			return other
		}
	}
	return nil
}

func flagKeys(c *cobra.Command) []flagKey {
	var out []flagKey
	for _, f := range visibleFlags(c) {
		out = append(out, keyOf(f))
	}
	return out
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

// visibleFlags returns the flags of a command and of its parents, sorted by name. --help and --version, which every
// command accepts, are left out.
func visibleFlags(c *cobra.Command) []*pflag.Flag {
	var out []*pflag.Flag
	add := func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && f.Name != "version" {
			out = append(out, f)
		}
	}
	c.LocalFlags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	slices.SortFunc(out, func(a, b *pflag.Flag) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// link returns a Markdown link to the section of a command. The anchor is derived from the heading, as GitHub does it.
func link(c *cobra.Command) string {
	return fmt.Sprintf("[%s](#%s)", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"))
}

func (d *document) writeSection(c *cobra.Command) {
	fmt.Fprintf(&d.text, "\n## %s\n\n", c.CommandPath())
	if other := d.aliased(c); other != nil {
		fmt.Fprintf(&d.text, "This command is an alias of %s and accepts the same flags.\n", link(other))
		return
	}
	fmt.Fprintf(&d.text, "%s\n\n```\n%s\n```\n", markdown(cmp.Or(c.Long, c.Short+".")), c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(&d.text, "\n```sh\n%s\n```\n", unindent(c.Example))
	}
	var own []*pflag.Flag
	var common []string
	for _, f := range visibleFlags(c) {
		if d.isCommon(f) {
			common = append(common, "`--"+f.Name+"`")
		} else {
			own = append(own, f)
		}
	}
	d.writeTable(own)
	if len(common) > 0 {
		fmt.Fprintf(&d.text, "\n[Common flags](#common-flags): %s\n", strings.Join(common, ", "))
	}
}

// markdown returns a help text with its indented lines as code blocks.
func markdown(help string) string {
	lines := strings.Split(help, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			lines[i] = "  " + line // a code block has an indentation of four
		}
	}
	return strings.Join(lines, "\n")
}

func (d *document) writeTable(flags []*pflag.Flag) {
	if len(flags) == 0 {
		return
	}
	d.text.WriteString("\n| Flag | Meaning |\n|---|---|\n")
	for _, f := range flags {
		d.text.WriteString(flagRow(f) + "\n")
	}
}

func flagRow(f *pflag.Flag) string {
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	value, usage := pflag.UnquoteUsage(f)
	if word, ok := valueNames()[value]; ok {
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

// valueNames returns the names of values by the type of their flag.
func valueNames() map[string]string {
	return map[string]string{
		"string": "VALUE", "strings": "LIST", "stringArray": "VALUE", "mapStringBool": "LIST",
		"int": "N", "int32": "N", "int32Slice": "LIST", "float32": "N", "duration": "DURATION",
	}
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
