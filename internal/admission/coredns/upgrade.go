package coredns

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/coredns/corefile-migration/migration"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateUpgrade refuses a version of CoreDNS that the Corefile of the cluster cannot be migrated to. Where no version is
// set on one side, kubeadm's own stands there, and where a tag is no version, that is refused elsewhere.
func ValidateUpgrade(before, now string, path *field.Path) field.ErrorList {
	from, err := ParseTag(before)
	if err != nil {
		return nil
	}
	to, err := ParseTag(now)
	if err != nil || isSameRelease(from, to) {
		return nil
	}
	if err := migration.ValidUpMigration(release(from), release(to)); err != nil {
		return field.ErrorList{field.Forbidden(path,
			fmt.Sprintf("cannot change from %s to %s: the Corefile cannot be migrated: %v", before, now, err))}
	}
	return nil
}

// ParseTag reads a version out of a tag, in which an underscore stands for the plus of a version.
func ParseTag(tag string) (semver.Version, error) {
	return semver.ParseTolerant(strings.Replace(tag, "_", "+", 1))
}

// release is the version of CoreDNS in a tag: what a builder of images adds to it does not count.
func release(v semver.Version) string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

func isSameRelease(a, b semver.Version) bool { return release(a) == release(b) }
