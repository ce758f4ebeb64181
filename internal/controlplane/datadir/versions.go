package datadir

import (
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// Versions are the versions of the programs that write a directory. controlplane.StartManagement passes them to
// [RecordVersions].
type Versions struct {
	Slipway    string `json:"slipway"`
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
}

// RecordVersions checks whether these versions can read a directory that the caller holds, and records them. Package
// controlplane calls it before the management cluster starts. An older version is rejected, because it drops unknown
// fields. A newer version must not skip a minor version of Kubernetes or etcd, because each minor version can only
// convert data of the previous one.
func RecordVersions(dir Dir, now Versions) error {
	before, err := readVersions(dir)
	if err != nil { // without the file, an older version would open data of a newer one
		return fault.New(fault.Invalid, reasonUnusable, "the versions that wrote data directory %s are unknown (%v): restore %s from a backup, or choose another --data-dir",
			dir, err, dir.versions()).From(err)
	}
	for _, part := range []struct {
		name, before, now string
		skips             bool
	}{
		{"slipway", before.Slipway, now.Slipway, true},
		{"Kubernetes", before.Kubernetes, now.Kubernetes, false},
		{"etcd", before.Etcd, now.Etcd, false},
	} {
		was, errBefore := version.ParseNumbers(part.before)
		is, errNow := version.ParseNumbers(part.now)
		if errBefore != nil || errNow != nil || isUnversioned(was) || isUnversioned(is) {
			continue
		}
		if is.IsOlderMinor(was) {
			return fault.New(fault.Invalid, reasonFormat,
				"data directory %s was written with %s %s, and this slipway (%s) has %s: use slipway %s or a newer one, or choose another --data-dir",
				dir, part.name, part.before, now.Slipway, part.now, before.Slipway)
		}
		if !part.skips && (is.Major != was.Major || is.Minor > was.Minor+1) {
			return fault.New(fault.Invalid, reasonSkipped,
				"data directory %s was written with %s %s, and this slipway has %s: start it once with a slipway that has %s %d.%d, or choose another --data-dir",
				dir, part.name, part.before, part.now, part.name, was.Major, was.Minor+1)
		}
	}
	if err := WriteJSON(dir.versions(), now); err != nil {
		return unusable(dir, err)
	}
	return nil
}

// readVersions returns no versions for a directory that was written before versions were recorded.
func readVersions(dir Dir) (Versions, error) {
	var v Versions
	_, err := ReadJSON(dir.versions(), &v)
	return v, err
}

// isUnversioned reports whether the version is that of a build without a release.
func isUnversioned(v version.Version) bool { return v.Major == 0 && v.Minor == 0 }
