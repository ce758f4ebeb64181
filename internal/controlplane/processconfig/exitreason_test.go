package processconfig_test

import (
	"os"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
)

// The reason of an end is that of the process which has just ended, and of no other.
func TestEnd(t *testing.T) {
	f := processconfig.Folder(t.TempDir())
	if got := f.ReadEnd(os.Getpid()); got != "" {
		t.Errorf("without a record: %q", got)
	}
	if err := f.WriteEnd("port 6443 is taken"); err != nil {
		t.Fatal(err)
	}
	if got := f.ReadEnd(os.Getpid()); got != "port 6443 is taken" {
		t.Errorf("got %q", got)
	}
	if got := f.ReadEnd(os.Getpid() + 1); got != "" {
		t.Errorf("of another process: %q", got)
	}
	if err := f.WriteEnd(strings.Repeat("ü", 4096)); err != nil {
		t.Fatal(err)
	}
	if got := f.ReadEnd(os.Getpid()); len(got) > 1024 || !strings.HasPrefix(got, "üü") {
		t.Errorf("%d bytes of a long reason", len(got))
	}
	f.ForgetEnd()
	if got := f.ReadEnd(os.Getpid()); got != "" {
		t.Errorf("after it was forgotten: %q", got)
	}
}
