package main

import (
	"io"
	"testing"
)

// TestSubcommands checks that all published subcommands exist.
func TestSubcommands(t *testing.T) {
	for _, name := range []string{"launch", "timeline", "verbs", "fleet", "isolation", "soak", "hook"} {
		cmd := newCommand()
		cmd.SetArgs([]string{name, "--help"})
		cmd.SetOut(io.Discard)
		if found, _, err := cmd.Find([]string{name}); err != nil || found.Name() != name {
			t.Errorf("%s: %v", name, err)
		}
		if err := cmd.Execute(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
