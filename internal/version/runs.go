package version

import (
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// Runs reports whether a kubelet that says it is of version have runs the version want of a spec. Distributions add a suffix
// to the version that they are made of ("v1.29.0-eks-5e0fdde", "v1.29.0-gke.1", "v1.29.0+k3s1"): a wanted version without a
// suffix is run by every kubelet of the same major, minor and patch number, other than alphas, betas and release candidates.
// One with a suffix is run by itself alone.
func Runs(have, want string) bool {
	if have == want {
		return true
	}
	w, err := utilversion.ParseSemantic(want)
	if err != nil || w.PreRelease() != "" || w.BuildMetadata() != "" {
		return false
	}
	h, err := utilversion.ParseSemantic(have)
	if err != nil || h.Major() != w.Major() || h.Minor() != w.Minor() || h.Patch() != w.Patch() {
		return false
	}
	return !isPreview(h.PreRelease())
}

// isPreview reports whether a suffix is one of Kubernetes' own, of versions that come before the one they name.
func isPreview(suffix string) bool {
	word, _, _ := strings.Cut(suffix, ".")
	return word == "alpha" || word == "beta" || word == "rc"
}

// Valid reports whether a text is a Kubernetes version as a spec may have it: "v" and a semantic version.
func Valid(text string) bool {
	number, hasV := strings.CutPrefix(text, "v")
	if !hasV || len(text) > maxVersion {
		return false
	}
	_, err := utilversion.ParseSemantic(number)
	return err == nil && !strings.HasPrefix(number, "v")
}
