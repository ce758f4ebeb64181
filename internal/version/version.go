package version

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/blang/semver/v4"
)

// Version is a Kubernetes version as a user or a provider writes it: with or without a leading v, and with or without a
// patch number, which managed control planes omit. Controllers, webhooks and commands compare versions with it; the
// order of versions with build metadata is Cluster API's.
type Version struct {
	semver.Version
	// short versions have no patch number and stand for the whole minor version.
	short bool
	text  string
}

// Parse parses the version of a user or of a provider, as [Version] describes it.
func Parse(text string) (Version, error) {
	v, err := semver.ParseTolerant(text)
	number, _, _ := strings.Cut(strings.TrimSpace(text), "-")
	number, _, _ = strings.Cut(number, "+")
	return Version{Version: v, short: strings.Count(number, ".") < 2, text: text}, err
}

// ParseSemantic parses a complete semantic version, with or without a leading v. Versions of providers and of
// cert-manager have this form, and package kubeadm/api requires it.
func ParseSemantic(text string) (Version, error) {
	v, err := parseSemantic(text)
	return Version{Version: v, text: text}, err
}

// ParseNumbers parses a version without its suffix. Use it for versions of servers and builds, whose suffix does not
// mark a pre-release.
func ParseNumbers(text string) (Version, error) {
	number, _, _ := strings.Cut(text, "-")
	number, _, _ = strings.Cut(number, "+")
	return Parse(number)
}

// String returns the original text of the version.
func (v Version) String() string { return v.text }

// SameMinor reports whether both have the same minor version.
func (v Version) SameMinor(other Version) bool { return compareMinor(v, other) == 0 }

// IsOlderMinor reports whether v has an older minor version than other.
func (v Version) IsOlderMinor(other Version) bool { return compareMinor(v, other) < 0 }

// Compare returns -1 if v is older than other, 1 if it is newer, and 0 if they are equal or their order is unknown. If
// one of them has no patch number, it compares minor versions. If both have build metadata and differ in nothing else,
// it compares the build metadata.
func (v Version) Compare(other Version) int {
	if v.short || other.short {
		return compareMinor(v, other)
	}
	order := v.Version.Compare(other.Version)
	if order != 0 || len(v.Build) == 0 || len(other.Build) == 0 {
		return order
	}
	return compareTexts(strings.Join(v.Build, "."), strings.Join(other.Build, "."))
}

func compareMinor(a, b Version) int {
	return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
}

// runs matches sequences of digits and sequences of other characters.
var runs = regexp.MustCompile(`[0-9]+|[^0-9]+`)

// compareTexts compares texts and treats sequences of digits as numbers: +build10 is newer than +build9.
func compareTexts(a, b string) int {
	x, y := runs.FindAllString(a, -1), runs.FindAllString(b, -1)
	for i := range min(len(x), len(y)) {
		if order := compareRuns(x[i], y[i]); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(x), len(y))
}

func compareRuns(a, b string) int {
	digits := func(s string) bool { return s[0] >= '0' && s[0] <= '9' }
	if digits(a) && digits(b) {
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	}
	return strings.Compare(a, b)
}
