package harness

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParsePID(t *testing.T) {
	if pid, err := parsePID([]byte(`{"state":"Running","management":{"pid":4711}}`)); pid != 4711 || err != nil {
		t.Errorf("pid %d, %v", pid, err)
	}
	if _, err := parsePID([]byte(`{"state":"Stopped"}`)); err == nil || !strings.Contains(err.Error(), "Stopped") {
		t.Errorf("a management cluster that is stopped: %v", err)
	}
}

// script writes a shell script in place of slipway.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slipway")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestWithInstallation checks that an installation is removed after an interrupt, and that its variables are set.
func TestWithInstallation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	folder := ""
	err := WithInstallation(ctx, script(t, `[ "$NO_COLOR$EXTRA" = 1x ] || exit 1; echo done; echo problem >&2; [ "$1" != fail ]`), func(in *Installation) error {
		folder = in.Folder
		if out, err := in.Run(ctx, "version"); err != nil || out.Text != "done\n" || out.Seconds <= 0 {
			t.Errorf("got %+v, %v", out, err)
		}
		if _, err := in.Run(ctx, "fail"); err == nil || !strings.Contains(err.Error(), "problem") {
			t.Errorf("got %v, want the error output", err)
		}
		cancel()
		return nil
	}, "EXTRA=x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", folder, err)
	}
}
