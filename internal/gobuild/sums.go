package gobuild

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// known are the checksums of the modules that this release was tested with, as in a go.sum: of everything that the programs of the
// default Kubernetes version are compiled from, and of what is known of others. What cannot be checked against it is checked
// against the public checksum database, if the environment of the caller does not say otherwise.
//
// After a change of a version, a build says which lines are missing, and in which go.sum they are.
//
//go:embed known.sum
var known string

// sums are lines of a go.sum by what they are about: module and version, and for a go.mod alone, version/go.mod.
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

// String writes them as a go.sum.
func (s sums) String() string {
	lines := make([]string, 0, len(s))
	for about, sum := range s {
		lines = append(lines, about+" "+sum+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// start is the go.sum with which a build begins that found this one from before. A known line is never another one.
func (s sums) start(m Module, before string) string {
	out := sums{}
	if !m.Sealed {
		out = parseSums(before)
	}
	for about, sum := range s {
		out[about] = sum
	}
	return out.String()
}

// check refuses modules that a build took although the release does not know them.
func (s sums) check(m Module, after string) error {
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
	return fault.New(fault.Invalid, "ModulesUnknown", "the node image would be compiled from modules that this release has no checksums of: %s; check GOPROXY and GOFLAGS",
		strings.Join(unknown, ", "))
}

// checkDownload refuses a module whose content is another than the known one.
func (s sums) checkDownload(r Requirement, sum string) error {
	if want := s[r.Path+" "+r.Version]; want != "" && want != sum {
		return fault.New(fault.Invalid, "ModuleChanged", "the module %s %s has the checksum %s and not %s, which this release knows: do not use what the module proxy sent (go env GOPROXY)", r.Path, r.Version, sum, want)
	}
	return nil
}
