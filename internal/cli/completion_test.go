package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/cli"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

func TestShells(t *testing.T) {
	for args, want := range map[string]string{
		"":         "bash, zsh, fish, powershell",
		"fishy":    "bash, zsh, fish, powershell",
		"bash zsh": "bash, zsh, fish, powershell",
		"fish":     "",
	} {
		var out bytes.Buffer
		cmd := cli.CompletionCommand(term.Env{Out: &out})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(args))
		err := cmd.Execute()
		switch {
		case want == "" && (err != nil || out.Len() == 0):
			t.Errorf("%q: %v", args, err)
		case want != "" && (err == nil || fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v", args, err)
		}
	}
}
