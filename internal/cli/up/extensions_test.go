package up

import (
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/extensiontools"
)

// RT-25: the start of a newer version names the extensions that it cannot call.
func TestExtensionWarnings(t *testing.T) {
	if got := extensionWarnings(extensiontools.CompatibilityReport{}); len(got) > 0 {
		t.Errorf("without extensions: %q", got)
	}
	got := strings.Join(extensionWarnings(extensiontools.CompatibilityReport{Broken: []string{"a.x"}, Deprecated: []string{"b.y: use v1"}}), "\n")
	for _, want := range []string{"cannot call the extension handler a.x", "deprecated hook: b.y: use v1"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
