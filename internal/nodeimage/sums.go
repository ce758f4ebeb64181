package nodeimage

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// knownSums contains the checksums of the modules that this release was tested with, in the format of go.sum: all
// modules of the programs for the default Kubernetes version, and some for other versions. Other modules are verified
// with the public checksum database, unless the caller's environment disables that.
//
// After a change of a version, the error of a build lists the modules whose lines are missing here. The lines are in
// the go.sum of the build's module directory in the cache.
//
//go:embed known.sum
var knownSums string

// sums contains lines of a go.sum by module and version (version/go.mod for a checksum of only the go.mod).
// [GoToolchain] checks each download and each build with them.
type sums map[string]string

func parseSums(text string) sums {
	out := sums{}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 3 {
			out[words[0]+" "+words[1]] = words[2]
		}
	}
	return out
}

// String returns the sums in the format of go.sum.
func (s sums) String() string {
	lines := make([]string, 0, len(s))
	for about, sum := range s {
		lines = append(lines, about+" "+sum+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// initialSums returns the initial go.sum of a build, given the existing one. Known checksums take precedence.
func (s sums) initialSums(m GoModule, before string) string {
	out := sums{}
	if !m.Sealed {
		out = parseSums(before)
	}
	for about, sum := range s {
		out[about] = sum
	}
	return out.String()
}

// check rejects modules that a sealed build used but whose checksums are unknown. [GoToolchain.Build] calls it after
// the compilation.
func (s sums) check(m GoModule, after string) error {
	if !m.Sealed {
		return nil
	}
	var unknown []string
	for about, sum := range parseSums(after) {
		if s[about] != sum {
			unknown = append(unknown, about)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return fault.New(fault.Invalid, "ModulesUnknown", "this release has no checksums of the following modules of the node image: %s; check GOPROXY and GOFLAGS",
		strings.Join(unknown, ", "))
}

// checkDownload rejects a module whose checksum differs from the known one.
func (s sums) checkDownload(r GoRequirement, sum string) error {
	if want := s[r.Path+" "+r.Version]; want != "" && want != sum {
		return fault.New(fault.Invalid, "ModuleChanged", "the module %s %s has the checksum %s, but this release expects %s: do not use the files of the module proxy (go env GOPROXY)", r.Path, r.Version, sum, want)
	}
	return nil
}
