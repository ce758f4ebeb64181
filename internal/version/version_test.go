package version_test

import (
	"testing"

	"github.com/slipwayhq/slipway/internal/version"
)

func TestCompare(t *testing.T) { // MS-13, MS-14
	for name, tc := range map[string]struct {
		reason, a, b string
		want         int
	}{
		"equal":            {"the same", "v1.36.3", "v1.36.3", 0},
		"without v":        {"one is written in another way", "1.36.3", "v1.36.3", 0},
		"older patch":      {"by number", "v1.36.9", "v1.36.10", -1},
		"newer minor":      {"by number", "v1.37.0", "v1.36.10", 1},
		"prerelease":       {"comes before the release", "v1.36.0-rc.1", "v1.36.0", -1},
		"no patch, equal":  {"stands for all of the minor version", "v1.29", "v1.29.7-eks-5e0fdde", 0},
		"no patch, 0":      {"a suffix of a provider is no prerelease there", "v1.29.0-eks-5e0fdde", "1.29", 0},
		"no patch, older":  {"by minor version", "v1.29.7-eks-5e0fdde", "1.30", -1},
		"major alone":      {"reads as .0", "2", "v1.36.3", 1},
		"older build":      {"an upgrade between builds of one version", "v1.30.0+rke2r1", "v1.30.0+rke2r2", -1},
		"builds by number": {"not by letter", "v1.30.0+rke2r10", "v1.30.0+rke2r9", 1},
		"builds of parts":  {"part by part", "v1.30.0+a.2", "v1.30.0+a.10", -1},
		"longer build":     {"what was appended is newer", "v1.30.0+a", "v1.30.0+a.1", -1},
		"leading zeros":    {"are no digits", "v1.30.0+a007", "v1.30.0+a7", 0},
		"one build":        {"the other one does not say", "v1.30.0", "v1.30.0+k3s1", 0},
	} {
		a, errA := version.Parse(tc.a)
		b, errB := version.Parse(tc.b)
		if errA != nil || errB != nil || a.String() != tc.a {
			t.Fatalf("%s: %q, %v, %v", name, a, errA, errB)
		}
		if got, back := a.Compare(b), b.Compare(a); got != tc.want || back != -tc.want {
			t.Errorf("%s: %s against %s is %d, and %d the other way round: %s", name, tc.a, tc.b, got, back, tc.reason)
		}
	}
	for _, text := range []string{"", "next", "v1.x.0", "1.2.3.4", "v1.36.3 -evil\n"} {
		if v, err := version.Parse(text); err == nil {
			t.Errorf("%q is read as %v", text, v.Version)
		}
	}
}

func TestParseNumbers(t *testing.T) { // suffixes of vendors are no pre-releases, and may break the rules of semantic versions
	for text, want := range map[string]string{
		"v1.30.0-eks-5e0fdde": "1.30.0", "v1.30.0+k3s1": "1.30.0", "v1.30.0-00": "1.30.0", "1.30": "1.30.0", "v1.36.3-rc.1": "1.36.3",
	} {
		if got, err := version.ParseNumbers(text); err != nil || got.Version.String() != want {
			t.Errorf("%q: %s, %v, want %s", text, got.Version, err, want)
		}
	}
	if version.IsOlder("v1.30.0", "1.30") || !version.IsOlder("v1.29.15", "1.30.0") {
		t.Error("the leading v matters")
	}
}

func TestParseSemantic(t *testing.T) {
	for text, ok := range map[string]bool{"v1.36.3": true, "1.36.3": true, "v1.36.3-rc.1+b": true, "v1.36": false, "": false, "v1.36.3-00": false, " v1.36.3": false} {
		if _, err := version.ParseSemantic(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
