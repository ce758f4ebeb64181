package extension

import (
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/internal/fault"
)

// RT-25: what would break is said, and is a failure; what goes later is said only.
func TestText(t *testing.T) {
	for name, tc := range map[string]struct {
		report extensiontools.CompatibilityReport
		want   string
		fails  bool
	}{
		"well":       {extensiontools.CompatibilityReport{}, "This version of slipway can call every extension (3).\n", false},
		"deprecated": {extensiontools.CompatibilityReport{Deprecated: []string{"x"}}, "These versions of hooks are deprecated:\n  x\nThis version of slipway can call every extension (3).\n", false},
		"broken":     {extensiontools.CompatibilityReport{Broken: []string{"x", "y"}}, "This version of slipway does not support the hooks of:\n  x\n  y\n", true},
	} {
		var out strings.Builder
		if err := checkText(&out, tc.report, 3); err != nil || out.String() != tc.want {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
		if err := tc.report.Err(); (err != nil) != tc.fails || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
