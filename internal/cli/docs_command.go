package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
)

const (
	// defaultWidth is the width of text that is not printed on a terminal.
	defaultWidth = 100
	// maxWidth limits the width on wide terminals, where long lines are hard to read.
	maxWidth = 120
)

// docsCommand returns the docs command. The pages are embedded (docs/docs.go); docs_topics.go finds them, and
// docs_render.go formats them.
func docsCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "docs [TOPIC]",
		Short: "Print the documentation",
		Long: `Print a page of the documentation that this binary includes. Without a topic, the command lists all
topics. TOPIC#SECTION prints one section of a page.`,
		Example: `  slipway docs
  slipway docs quickstart | less -R
  slipway docs local#bootstrap-of-a-node
  slipway docs cluster-class -o markdown > cluster-class.md
  slipway docs kube-state-metrics.yaml > kube-state-metrics.yaml`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completions(args), cobra.ShellCompDirectiveNoFileComp
		},
	}
	format := term.AddOutputFlag(cmd.Flags(), "markdown")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return list(e, format)
		}
		t, err := find(args[0])
		if err != nil {
			return err
		}
		return format.Print(e.Out, t, func(w io.Writer) error {
			if format.String() == "markdown" || !t.isPage() {
				_, err := io.WriteString(w, t.Text)
				return err
			}
			s := term.DetectScreen(e, w)
			width := s.Width
			if width == 0 {
				width = defaultWidth
			}
			_, err := io.WriteString(term.Unescaped(w), render(t.Text, style{Width: min(width, maxWidth), Color: s.Color}))
			return err
		})
	}
	return cmd
}

func completions(args []string) []string {
	all, err := topics()
	if err != nil || len(args) > 0 {
		return nil
	}
	var out []string
	for _, t := range all {
		out = append(out, cobra.CompletionWithDesc(t.Name, t.Title))
	}
	return out
}

// list prints the topics.
func list(e term.Env, format *term.Format) error {
	all, err := topics()
	if err != nil {
		return err
	}
	return format.Print(e.Out, all, func(w io.Writer) error {
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		_, _ = fmt.Fprintln(t, "TOPIC\tTITLE")
		for _, topic := range all {
			_, _ = fmt.Fprintf(t, "%s\t%s\n", topic.Name, strings.ReplaceAll(topic.Title, "`", ""))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		_, err := fmt.Fprintln(w, "\nPrint one with: slipway docs TOPIC")
		return err
	})
}
