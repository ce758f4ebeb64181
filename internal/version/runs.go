package version

import (
	"strings"

	"github.com/blang/semver/v4"
)

// Runs reports whether a kubelet that says it is of version have runs the version want of a spec. Distributions add a suffix
// to the version that they are made of ("v1.29.0-eks-5e0fdde", "v1.29.0-gke.1", "v1.29.0+k3s1"): a wanted version without a
// suffix is run by every kubelet of the same major, minor and patch number, other than alphas, betas and release candidates.
// One with a suffix is run by itself alone.
func Runs(have, want string) bool {
	if have == want {
		return true
	}
	w, err := parseSemantic(want)
	if err != nil || len(w.Pre) > 0 || len(w.Build) > 0 {
		return false
	}
	h, err := parseSemantic(have)
	if err != nil || h.FinalizeVersion() != w.FinalizeVersion() {
		return false
	}
	return len(h.Pre) == 0 || !isPreview(h.Pre[0].String())
}

// isPreview reports whether a suffix is one of Kubernetes' own, of versions that come before the one they name.
func isPreview(word string) bool { return word == "alpha" || word == "beta" || word == "rc" }

// Valid reports whether a text is a Kubernetes version as a spec may have it: "v" and a semantic version.
func Valid(text string) bool {
	number, hasV := strings.CutPrefix(text, "v")
	_, err := semver.Parse(number)
	return hasV && err == nil && len(text) <= maxVersion
}

// IsVersion reports whether a text is a version that Parse reads and a status takes: of a bounded length, with nothing around it.
func IsVersion(text string) bool {
	_, err := Parse(text)
	return err == nil && len(text) <= maxVersion && strings.TrimSpace(text) == text
}

// parseSemantic reads a complete semantic version, with or without a leading v.
func parseSemantic(text string) (semver.Version, error) {
	return semver.Parse(strings.TrimPrefix(text, "v"))
}

// IsOlder reports whether a version is older than another; false where one is none.
func IsOlder(text, than string) bool {
	v, err := Parse(text)
	if err != nil {
		return false
	}
	w, err := Parse(than)
	return err == nil && v.Compare(w) < 0
}
