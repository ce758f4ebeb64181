package version

import (
	"strings"

	"github.com/blang/semver/v4"
)

// Runs reports whether a kubelet that reports version have runs version want of a spec. Distributions add a suffix to
// the upstream version ("v1.29.0-eks-5e0fdde", "v1.29.0-gke.1", "v1.29.0+k3s1"). Therefore a want without suffix
// matches every kubelet with the same major, minor and patch number, except alphas, betas and release candidates. A
// want with a suffix matches only the identical version. The MachinePool controller and the upgrade of a topology
// decide with it whether an upgrade is complete. The preflight checks of Machines and the webhook of Clusters decide
// with it whether one is in progress.
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

// isPreview reports whether a suffix marks a Kubernetes pre-release.
func isPreview(word string) bool { return word == "alpha" || word == "beta" || word == "rc" }

// Valid reports whether a text is a valid version for a spec: "v" followed by a semantic version. Admission, node
// images and the files of hosted control planes require it.
func Valid(text string) bool {
	number, hasV := strings.CutPrefix(text, "v")
	_, err := semver.Parse(number)
	return hasV && err == nil && len(text) <= maxVersion
}

// IsVersion reports whether [Parse] accepts a text and a status may contain it: limited in length and without
// surrounding white space. It checks versions in the files of control planes and snapshots, which a tenant may have
// written.
func IsVersion(text string) bool {
	_, err := Parse(text)
	return err == nil && len(text) <= maxVersion && strings.TrimSpace(text) == text
}

// parseSemantic parses a complete semantic version, with or without a leading v.
func parseSemantic(text string) (semver.Version, error) {
	return semver.Parse(strings.TrimPrefix(text, "v"))
}

// IsOlder reports whether a version is older than another. It returns false if either of them is invalid. It is for
// callers that have only texts; others compare values of [Version].
func IsOlder(text, than string) bool {
	v, err := Parse(text)
	if err != nil {
		return false
	}
	w, err := Parse(than)
	return err == nil && v.Compare(w) < 0
}
