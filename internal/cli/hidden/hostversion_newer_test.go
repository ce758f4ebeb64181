package hidden

import (
	"testing"

	"github.com/slipwayhq/slipway/internal/clusterctl/template"
)

// What an upgrade could go to is named, where it is known.
func TestNewer(t *testing.T) {
	have := []string{"v1.35.4", "v1.36.3", "v1.37.2"}
	for version, want := range map[string]string{
		"v1.35.4": "; this host has v1.36.3, v1.37.2", "v1.37.2": "; this host has none that is newer: `slipway versions add` adds one",
	} {
		if got := newerVersionsText(have, version); got != want {
			t.Errorf("%s: %q", version, got)
		}
	}
	if got := NewerVersions("", template.Class{}, "v1.35.4"); got != "" {
		t.Errorf("another host: %q", got)
	}
}
