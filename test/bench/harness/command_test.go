package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// TestCommand checks the default and the absolute path of the binary, and that numbers must not be negative.
func TestCommand(t *testing.T) {
	t.Setenv(apiserver.BinaryVariable, "/opt/slipway")
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (Options, int, error) {
		var o Options
		count := 0
		cmd := o.Command("test", "", "test.json", func(context.Context) {})
		cmd.Flags().IntVar(&count, "count", 1, "")
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
	for _, args := range [][]string{{"--count", "-1"}, {"--count", "x"}, {"argument"}, {"--unknown"}} {
		if _, _, err := run(args...); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestCheck(t *testing.T) {
	failed, closed := errors.New("failed"), errors.New("not closed")
	err := Try(func() {
		defer Close(func() error { return closed })
		Check(nil)
		Checkf(failed, "step %d", 1)
		t.Error("a failed step does not end the benchmark")
	})
	if !errors.Is(err, failed) || !errors.Is(err, closed) || !strings.Contains(err.Error(), "step 1: failed") {
		t.Errorf("got %v, want the errors of the step and of the clean-up", err)
	}
	if err := Try(func() { Close(func() error { return nil }) }); err != nil {
		t.Errorf("got %v without a failure", err)
	}
	cleaned := false
	defer func() {
		if recover() == nil || !cleaned {
			t.Errorf("a panic that is no failure must not become an error, and must not prevent the clean-up (done: %t)", cleaned)
		}
	}()
	_ = Try(func() {
		defer Close(func() error { cleaned = true; return nil })
		panic("bug")
	})
}

func TestTogether(t *testing.T) {
	failed := errors.New("failed")
	err := Try(func() {
		Together(t.Context(), func(context.Context) { Check(failed) }, func(ctx context.Context) { Sleep(ctx, time.Hour) })
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v, want the first error, which ends the other function", err)
	}
}

func TestSampling(t *testing.T) {
	failed, calls := errors.New("failed"), make(chan bool, 10)
	read := func() { calls <- true }
	Sampling(t.Context(), time.Hour, read, func() { <-calls })
	if err := Try(func() { Sampling(t.Context(), time.Hour, read, func() { <-calls; Check(failed) }) }); !errors.Is(err, failed) {
		t.Errorf("got %v, want the error of the function", err)
	}
	if err := Try(func() { Sampling(t.Context(), time.Hour, func() { Check(failed) }, func() {}) }); !errors.Is(err, failed) {
		t.Errorf("got %v, want the error of the sampler", err)
	}
}

func TestWriteFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sub", "x.json")
	WriteFile(name, "x")
	if data, err := os.ReadFile(name); err != nil || string(data) != "x" {
		t.Errorf("got %q, %v", data, err)
	}
	if err := Try(func() { WriteFile(filepath.Join(name, "y"), "x") }); err == nil {
		t.Error("no error for a file below a file")
	}
	if got := Sibling("a.b/x.json", ".svg"); got != "a.b/x.svg" {
		t.Errorf("sibling: %s", got)
	}
}
