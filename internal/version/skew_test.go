package version_test

import (
	"testing"

	"github.com/slipwayhq/slipway/internal/version"
)

func parsed(t *testing.T, text string) version.Version {
	t.Helper()
	v, err := version.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSpan(t *testing.T) { // MS-14, MS-15
	for name, tc := range map[string]struct {
		reason          string
		servers         []string
		kubelet         string
		tooNew, tooOld  bool
		otherMinor      string
		lowest, highest string
	}{
		"the same":       {"", []string{"v1.36.3"}, "v1.36.3", false, false, "", "v1.36.3", "v1.36.3"},
		"newer patch":    {"minor versions count", []string{"v1.36.3"}, "v1.36.9", false, false, "", "v1.36.3", "v1.36.3"},
		"newer":          {"", []string{"v1.36.3"}, "v1.37.0", true, false, "v1.36.3", "v1.36.3", "v1.36.3"},
		"other major":    {"", []string{"v1.36.3"}, "v2.0.0", true, true, "v1.36.3", "v1.36.3", "v1.36.3"},
		"three older":    {"the most there may be", []string{"v1.36.3"}, "v1.33.0", false, false, "v1.36.3", "v1.36.3", "v1.36.3"},
		"four older":     {"", []string{"v1.36.3"}, "v1.32.9", false, true, "v1.36.3", "v1.36.3", "v1.36.3"},
		"newer than one": {"the oldest API server counts", []string{"v1.36.3", "v1.35.9"}, "v1.36.3", true, false, "v1.35.9", "v1.35.9", "v1.36.3"},
		"older than one": {"the newest API server counts", []string{"v1.35.9", "v1.36.0", "v1.36.3"}, "v1.32.0", false, true, "v1.35.9", "v1.35.9", "v1.36.3"},
		"kubeadm":        {"the newest is of another minor version", []string{"v1.35.9", "v1.36.3"}, "v1.35.1", false, false, "v1.36.3", "v1.35.9", "v1.36.3"},
	} {
		first := parsed(t, tc.servers[0])
		span := version.Span{Lowest: first, Highest: first}
		for _, text := range tc.servers[1:] {
			span = span.Include(parsed(t, text))
		}
		kubelet := parsed(t, tc.kubelet)
		other, _ := span.OtherMinor(kubelet)
		if span.IsOlderThan(kubelet) != tc.tooNew || span.IsTooNewFor(kubelet) != tc.tooOld || other.String() != tc.otherMinor ||
			span.Lowest.String() != tc.lowest || span.Highest.String() != tc.highest {
			t.Errorf("%s: %s: %s against %v: too new %v, too old %v, other minor %q", name, tc.reason, tc.kubelet, span,
				span.IsOlderThan(kubelet), span.IsTooNewFor(kubelet), other)
		}
	}
}
