package data_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/cli/data"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

// What is no database is refused, and every flag is needed: a member without a name or address would be of no use.
func TestRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot.db")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []string{"--snapshot=" + file, "--data-dir=" + filepath.Join(t.TempDir(), "data"), "--name=n-a", "--peer-url=https://172.18.0.2:2380", "--token=t"}
	run := func(args ...string) error {
		cmd := data.EtcdDataCommand(term.Env{})
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		return cmd.Execute()
	}
	if err := run(all...); err == nil || !strings.Contains(err.Error(), "the snapshot cannot be restored") {
		t.Errorf("no database: %v", err)
	}
	for i := range all {
		if err := run(append(append([]string{}, all[:i]...), all[i+1:]...)...); err == nil || !strings.Contains(err.Error(), "required flag") {
			t.Errorf("without %s: %v", all[i], err)
		}
	}
}
