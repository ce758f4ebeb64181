package admission

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/coredns/corefile-migration/migration"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateCoreDNSUpgrade rejects, on update of a KubeadmControlPlane, a CoreDNS version to which the Corefile of the
// cluster cannot be migrated. An empty tag means kubeadm's default and is not checked; invalid tags are rejected
// elsewhere. [validateControlPlaneChange] calls it for [Validate].
func validateCoreDNSUpgrade(before, now string, path *field.Path) field.ErrorList {
	from, err := parseTag(before)
	if err != nil {
		return nil
	}
	to, err := parseTag(now)
	if err != nil || isSameRelease(from, to) {
		return nil
	}
	if err := migration.ValidUpMigration(release(from), release(to)); err != nil {
		return field.ErrorList{field.Forbidden(path,
			fmt.Sprintf("cannot change from %s to %s: the Corefile cannot be migrated: %v", before, now, err))}
	}
	return nil
}

// parseTag parses a version from a tag, in which an underscore replaces the plus sign.
func parseTag(tag string) (semver.Version, error) {
	return semver.ParseTolerant(strings.Replace(tag, "_", "+", 1))
}

// release returns the CoreDNS version without additions by image builders.
func release(v semver.Version) string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

func isSameRelease(a, b semver.Version) bool { return release(a) == release(b) }
