package interop

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	reference "sigs.k8s.io/cluster-api/cmd/clusterctl/cmd"
)

// The table that the verbs of Slipway are compared with is what the reference has.
func TestTableOfVerbs(t *testing.T) {
	data, err := os.ReadFile("../../internal/cli/testdata/clusterctl.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "#") {
			want = append(want, strings.TrimRight(line, "\n"))
		}
	}
	var got []string
	add := func(verb string) func(*pflag.Flag) {
		return func(f *pflag.Flag) {
			if f.Name == "help" || f.Hidden && f.Deprecated == "" {
				return
			}
			value := strings.TrimSuffix(strings.TrimPrefix(f.DefValue, "["), "]")
			got = append(got, strings.Join([]string{verb, f.Name, f.Shorthand, kindOf(f), value}, "\t"))
		}
	}
	reference.RootCmd.PersistentFlags().VisitAll(add(""))
	for _, c := range below(reference.RootCmd) {
		verb := strings.TrimPrefix(c.CommandPath(), "clusterctl ")
		got = append(got, verb)
		global := c.Root().PersistentFlags()
		c.InheritedFlags() // merges what commands above have
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if global.Lookup(f.Name) == nil {
				add(verb)(f)
			}
		})
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("internal/cli/testdata/clusterctl.tsv (-reference +table):\n%s", d)
	}
}

// below are the verbs that do something.
func below(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" {
			continue
		}
		if sub.Runnable() && sub.Flags().HasAvailableFlags() || !sub.HasAvailableSubCommands() {
			out = append(out, sub)
		}
		out = append(out, below(sub)...)
	}
	return out
}

func kindOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "bool"
	case "int", "int64", "int32":
		return "int"
	}
	return "text"
}
