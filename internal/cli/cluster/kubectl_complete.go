package cluster

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipwayhq/slipway/internal/cli/term"
)

// completeKubectl returns the completions of kubectl for an argument. The shell completion of "slipway kubectl" calls
// it.
func completeKubectl(e term.Env, args []string, last string) ([]string, cobra.ShellCompDirective) {
	a, err := parseKubectlArguments(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	path, err := kubectlKubeconfig(e, a)
	if err != nil {
		path = "" // commands and flags are completed without a cluster
	}
	if setKubeconfigVariable(path) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: io.Discard}
	root := newKubectl(streams, append(append([]string{cobra.ShellCompRequestCmd}, a.rest...), last))
	root.SetOut(&out)
	root.SetErr(io.Discard)
	if root.Execute() != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return parseCompletions(out.String())
}

// parseCompletions parses cobra's completion output: one candidate per line, then a colon and the directive.
func parseCompletions(text string) ([]string, cobra.ShellCompDirective) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	end := lines[len(lines)-1]
	directive, err := strconv.Atoi(strings.TrimPrefix(end, ":"))
	if err != nil || !strings.HasPrefix(end, ":") {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:len(lines)-1], cobra.ShellCompDirective(directive)
}
