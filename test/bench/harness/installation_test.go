package harness

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParsePID(t *testing.T) {
	if pid := parsePID(`{"state":"Running","management":{"pid":4711}}`); pid != 4711 {
		t.Errorf("pid %d", pid)
	}
	if err := Try(func() { parsePID(`{"state":"Stopped"}`) }); err == nil || !strings.Contains(err.Error(), "Stopped") {
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
	slipway := script(t, `[ "$NO_COLOR$EXTRA" = 1x ] || exit 1; echo done; echo problem >&2; [ "$1" != fail ]`)
	WithInstallation(ctx, slipway, func(in *Installation) {
		folder = in.Folder
		if out := in.Run(ctx, "version"); out.Text != "done\n" || out.Seconds <= 0 {
			t.Errorf("got %+v", out)
		}
		if err := Try(func() { in.Run(ctx, "fail") }); err == nil || !strings.Contains(err.Error(), "problem") {
			t.Errorf("got %v, want the error output", err)
		}
		cancel()
	}, "EXTRA=x")
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", folder, err)
	}
}
