package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
)

// TestCommand checks the default and the absolute path of the binary, and the minimum of a flag.
func TestCommand(t *testing.T) {
	t.Setenv(apiserver.BinaryVariable, "/opt/slipway")
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (Options, int, error) {
		var o Options
		count := 0
		cmd := o.Command("test", "", "test.json", func(context.Context) error { return nil })
		cmd.Flags().IntVar(&count, "count", 1, "")
		AtLeast(cmd.Flags(), "count", &count, 1)
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.Execute()
		return o, count, err
	}
	for path, want := range map[string]string{"": "/opt/slipway", "/bin/other": "/bin/other", "other": filepath.Join(folder, "other")} {
		o, count, err := run("--slipway", path, "--count", "3")
		if o.Binary != want || o.Out != filepath.Join("dist", "bench", "test.json") || count != 3 || err != nil {
			t.Errorf("%q: got %+v, %d, %v, want %s", path, o, count, err, want)
		}
	}
	for _, args := range [][]string{{"--count", "0"}, {"--count", "x"}, {"argument"}, {"--unknown"}} {
		if _, _, err := run(args...); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestInOrder(t *testing.T) {
	failed, calls := errors.New("failed"), 0
	step := func(err error) func(context.Context) error {
		return func(context.Context) error { calls++; return err }
	}
	if err := InOrder(t.Context(), step(nil), step(failed), step(nil)); !errors.Is(err, failed) || calls != 2 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}

func TestWriteFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sub", "x.json")
	broken := errors.New("broken")
	if err := WriteFile(name, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the content", err)
	}
	err := WriteFile(name, func(w io.Writer) error {
		_, err := fmt.Fprint(w, "x")
		return err
	})
	if data, readErr := os.ReadFile(name); err != nil || readErr != nil || string(data) != "x" {
		t.Errorf("got %q, %v, %v", data, err, readErr)
	}
	if got := Sibling("a.b/x.json", ".svg"); got != "a.b/x.svg" {
		t.Errorf("sibling: %s", got)
	}
}
