package admission

import (
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// withV adds a missing leading v to a Kubernetes version. [Default] adds it for Clusters, KubeadmControlPlanes,
// Machines and templates of Machines.
func withV(version string) string {
	if version != "" && version[0] >= '0' && version[0] <= '9' {
		return "v" + version
	}
	return version
}

// validateVersion validates the Kubernetes version in a Machine, a template of Machines or a KubeadmControlPlane: "v"
// and a semantic version. Empty is valid. The validation of each of these kinds calls it.
func validateVersion(version string, path *field.Path) field.ErrorList {
	if version == "" {
		return nil
	}
	number, hasV := strings.CutPrefix(version, "v")
	if _, err := semver.Parse(number); err != nil || !hasV {
		return field.ErrorList{field.Invalid(path, version, "must be a semantic version with a leading v, for example v1.36.3")}
	}
	return nil
}

// validateSame checks that a string has not changed. The validation of several kinds calls it on update for an
// immutable field.
func validateSame(before, now string, path *field.Path) field.ErrorList {
	if before == now {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "cannot be changed from "+before)}
}
