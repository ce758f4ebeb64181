package version_test

import (
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/version"
)

func TestRuns(t *testing.T) { // MP-11, MP-12, MA-24
	for name, tc := range map[string]struct {
		reason, have, want string
		ok                 bool
	}{
		"the same":           {"as it is", "v1.29.0", "v1.29.0", true},
		"EKS":                {"a vendor's suffix", "v1.29.0-eks-5e0fdde", "v1.29.0", true},
		"GKE":                {"a vendor's suffix with a number", "v1.29.0-gke.1425000", "v1.29.0", true},
		"k3s":                {"build metadata", "v1.29.0+k3s1", "v1.29.0", true},
		"both":               {"suffix and metadata", "v1.29.0-x+y", "v1.29.0", true},
		"another patch":      {"an update that is due", "v1.29.1-eks-5e0fdde", "v1.29.0", false},
		"another minor":      {"an upgrade that is due", "v1.28.0", "v1.29.0", false},
		"candidate":          {"comes before the release", "v1.29.0-rc.1", "v1.29.0", false},
		"alpha of a build":   {"comes before the release", "v1.29.0-alpha.3.12+abc", "v1.29.0", false},
		"beta":               {"comes before the release", "v1.29.0-beta.0", "v1.29.0", false},
		"like a candidate":   {"rc is a word, not a prefix", "v1.29.0-rcloud.1", "v1.29.0", true},
		"candidate wanted":   {"itself", "v1.29.0-rc.1", "v1.29.0-rc.1", true},
		"another candidate":  {"a suffix in the spec is meant", "v1.29.0-rc.2", "v1.29.0-rc.1", false},
		"revision wanted":    {"itself", "v1.29.0+rke2r1", "v1.29.0+rke2r1", true},
		"revision to update": {"a suffix in the spec is meant", "v1.29.0+rke2r1", "v1.29.0+rke2r2", false},
		"release for suffix": {"a suffix in the spec is meant", "v1.29.0", "v1.29.0-eks-5e0fdde", false},
		"nonsense":           {"a workload cluster may say anything", "latest", "v1.29.0", false},
		"nothing":            {"not known", "", "v1.29.0", false},
		"spec without patch": {"such a spec passes no validation", "v1.29.0", "v1.29", false},
	} {
		if got := version.Runs(tc.have, tc.want); got != tc.ok {
			t.Errorf("%s: %s: %q runs %q: %t", name, tc.reason, tc.have, tc.want, got)
		}
	}
}

func TestValid(t *testing.T) {
	for text, want := range map[string]bool{
		"v1.29.0": true, "v1.29.0-eks-5e0fdde": true, "v1.29.0+k3s1": true, "1.29.0": false, "v1.29": false, "": false, "vv1.29.0": false,
		"latest": false, "v1.29.0-" + strings.Repeat("x", 300): false,
	} {
		if version.Valid(text) != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
}

func TestIsOlder(t *testing.T) {
	for name, tc := range map[string]struct {
		text, than string
		want       bool
	}{
		"older":     {"v1.35.4", "v1.36.3", true},
		"same":      {"v1.36.3", "v1.36.3", false},
		"newer":     {"v1.36.10", "v1.36.9", false},
		"none":      {"", "v1.36.3", false},
		"than none": {"v1.36.3", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := version.IsOlder(tc.text, tc.than); got != tc.want {
				t.Errorf("is %q older than %q: %v", tc.text, tc.than, got)
			}
		})
	}
}
