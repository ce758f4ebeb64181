package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// reference reads the table of clusterctl's verbs; the first rows, of the verb "", are those of all.
func reference(t *testing.T) (verbs []string, flags map[string][][]string) {
	t.Helper()
	data, err := os.ReadFile("testdata/clusterctl.tsv")
	if err != nil {
		t.Fatal(err)
	}
	flags = map[string][][]string{}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimRight(line, "\n"); strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		switch len(fields) {
		case 1:
			verbs = append(verbs, fields[0])
		case 5:
			flags[fields[0]] = append(flags[fields[0]], fields[1:])
		default:
			t.Fatalf("a row of %d fields: %s", len(fields), line)
		}
	}
	return verbs, flags
}

// runnable are the verbs that do something, with those below them.
func runnable(c *cobra.Command, prefix string) []string {
	var out []string
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" {
			continue
		}
		path := strings.TrimSpace(prefix + " " + sub.Name())
		below := runnable(sub, path)
		if len(below) == 0 || sub.Flags().Lookup("validate") != nil || sub.Flags().Lookup("include-crd") != nil { // init, delete
			out = append(out, path)
		}
		out = append(out, below...)
	}
	return out
}

func kindOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "bool"
	case "int", "int64", "int32", "count":
		return "int"
	}
	return "text"
}

func quiet() term.Env {
	return term.Env{Getenv: func(string) string { return "" }, In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
}

// CX-16, CX-19: both trees have the verbs of clusterctl with its flags, shorthands and defaults; a link of the name has no
// other verbs. What this build does not have is named in the list of what is not there.
func TestVerbsOfClusterctl(t *testing.T) {
	verbs, flags := reference(t)
	absent, err := os.ReadFile("../../docs/not-there-yet.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, root := range map[string]*cobra.Command{"slipway": cli.Root(quiet()), "clusterctl": cli.Clusterctl(quiet())} {
		there := runnable(root, "")
		for _, verb := range verbs {
			if !slices.Contains(there, verb) {
				if !strings.Contains(string(absent), "`clusterctl "+verb+"`") {
					t.Errorf("%s has no verb %q, and docs/not-there-yet.md does not say so", name, verb)
				}
				continue
			}
			cmd, _, err := root.Find(strings.Fields(verb))
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range append(flags[""], flags[verb]...) {
				compareFlag(t, name+" "+verb, cmd, row)
			}
		}
		for _, verb := range there {
			if name == "clusterctl" && !slices.Contains(verbs, verb) {
				t.Errorf("clusterctl has no verb %q", verb)
			}
		}
	}
}

func compareFlag(t *testing.T, verb string, cmd *cobra.Command, row []string) {
	t.Helper()
	f := cmd.Flag(row[0])
	if f == nil {
		t.Errorf("%s has no flag --%s", verb, row[0])
		return
	}
	value := strings.TrimSuffix(strings.TrimPrefix(f.DefValue, "["), "]")
	if got := []string{f.Name, f.Shorthand, kindOf(f), value}; !slices.Equal(got, row) {
		t.Errorf("%s: flag %q, want %q", verb, got, row)
	}
}

// The texts of a link name it, and what only slipway has keeps its name.
func TestTextsOfALink(t *testing.T) {
	cmd, _, err := cli.Clusterctl(quiet()).Find([]string{"generate", "cluster"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(cmd.Example, "clusterctl generate cluster demo") || !strings.Contains(cmd.Example, "slipway kubectl apply") {
		t.Errorf("example:\n%s", cmd.Example)
	}
}

// A symbolic link named clusterctl is clusterctl; a program in PATH is a verb of both; verbs of former versions say what to do now.
func TestLinkAndPlugins(t *testing.T) { // CX-17, CX-19
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	link := filepath.Join(folder, "clusterctl")
	if err := os.Symlink(binary, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"clusterctl-hello", "slipway-only-here"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\necho plugin $0 \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		program, args string
		code          int
		want          string
	}{
		"a verb":                    {link, "generate yaml --help", 0, "clusterctl generate yaml [flags]"},
		"none of slipway's":         {link, "up", cli.ExitInvalid, `clusterctl has no verb "up"; "slipway up" has it`},
		"no verb":                   {binary, "frobnicate", cli.ExitInvalid, `unknown command "frobnicate" for "slipway"; see "slipway --help"`},
		"a mistyped verb":           {binary, "desribe", cli.ExitInvalid, `slipway: unknown command "desribe" for "slipway"; did you mean describe?; see "slipway --help"`},
		"none of slipway's, below":  {link, "get clusters", cli.ExitInvalid, `the subcommands of "clusterctl get" are: kubeconfig`},
		"flags alone":               {link, "delete cluster demo", cli.ExitInvalid, `"clusterctl delete" takes flags alone, not cluster demo; see "clusterctl delete --help"`},
		"flags before the verb":     {link, "-v 5 --config /nonexistent generate yaml --help", 0, "clusterctl generate yaml"},
		"completion":                {link, "completion bash", 0, "__start_clusterctl"},
		"a plugin of clusterctl":    {link, "hello you --there", 0, folder + "/clusterctl-hello you --there"},
		"the same for slipway":      {binary, "hello you", 0, folder + "/clusterctl-hello you"},
		"a plugin of two words":     {binary, "only here now", 0, folder + "/slipway-only-here now"},
		"not for the link":          {link, "only here", cli.ExitInvalid, `clusterctl: unknown command "only" for "clusterctl"; see "clusterctl --help"`},
		"topology plan was removed": {binary, "alpha topology plan -f x", cli.ExitInvalid, `"slipway plan -f FILE" shows`},
		"examples are of its verbs": {link, "delete --help", cli.ExitOK, "Examples:\n  clusterctl delete --infrastructure aws"},
		"rollout is alpha there":    {link, "rollout restart machinedeployment/a", cli.ExitInvalid, "clusterctl alpha rollout restart"},
		"undo without alpha":        {binary, "rollout undo machinedeployment/a", cli.ExitInvalid, "apply the previous machine template again"},
		"a verb of slipway":         {link, "backup file", cli.ExitInvalid, `clusterctl has no verb "backup"; "slipway backup" has it`},
		"help of a kubeconfig":      {link, "get kubeconfig --help", 0, "(default: $KUBECONFIG, else the kubeconfig of the data directory)"},
		"undo was removed":          {link, "alpha rollout undo machinedeployment/a", cli.ExitInvalid, "apply the previous machine template again"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), tc.program, strings.Fields(tc.args)...)
			cmd.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
			out, _ := cmd.CombinedOutput() // the exit code is compared
			if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(string(out), tc.want) {
				t.Errorf("exit code %d, want %d, and %q in:\n%s", code, tc.code, tc.want, out)
			}
		})
	}
}
