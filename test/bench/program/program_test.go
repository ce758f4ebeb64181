package program_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
	"github.com/slipwayhq/slipway/test/bench/program"
)

func TestBinary(t *testing.T) {
	t.Setenv(apiserver.BinaryVariable, "/opt/slipway")
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"": "/opt/slipway", "/bin/other": "/bin/other", "other": filepath.Join(folder, "other")} {
		if got, err := program.Binary(path); got != want || err != nil {
			t.Errorf("%q: got %s, %v, want %s", path, got, err, want)
		}
	}
}

func TestWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sub", "x.json")
	broken := errors.New("broken")
	if err := program.Write(name, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want what the content says", err)
	}
	err := program.Write(name, func(w io.Writer) error {
		_, err := fmt.Fprint(w, "x")
		return err
	})
	if data, readErr := os.ReadFile(name); err != nil || readErr != nil || string(data) != "x" {
		t.Errorf("got %q, %v, %v", data, err, readErr)
	}
	if got := program.Beside("a.b/x.json", ".svg"); got != "a.b/x.svg" {
		t.Errorf("beside: %s", got)
	}
}
