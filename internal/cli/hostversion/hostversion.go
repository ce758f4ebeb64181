// Package hostversion says which Kubernetes versions the host of a management cluster cannot run.
//
// Does: compares what a Cluster of a class is to have with the versions in the data directory ([Lacks]), so that verbs can refuse before
// anything is written.
//
// Never: asks the management cluster. Of one on another host nothing is known: there the control plane says it.
//
// Read first: [Lacks].
package hostversion

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/slipwayhq/slipway/internal/clusterctl/class"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/releases"
)

// Newer names the versions of the host that a control plane of a class could be upgraded to; empty: none is known.
func Newer(dir datadir.Dir, of class.Class, version string) string {
	if dir == "" || !of.RunsOnHost() {
		return ""
	}
	return newer(releases.Local(dir.Kubernetes()).Versions(), version)
}

func newer(have []string, version string) string {
	newer := slices.DeleteFunc(slices.Clone(have), func(v string) bool { return semver.Compare(v, version) <= 0 })
	if len(newer) == 0 {
		return "; this host has none that is newer: `slipway versions add` adds one"
	}
	return "; this host has " + strings.Join(newer, ", ")
}

// Lacks says what the host lacks for control planes of a class, and what adds it; empty: nothing, as far as is known. An empty folder is
// that of another host.
func Lacks(dir datadir.Dir, of class.Class, version string) string {
	if dir == "" || !of.RunsOnHost() {
		return ""
	}
	store := releases.Local(dir.Kubernetes())
	have := store.Versions()
	if slices.Contains(have, version) {
		return ""
	}
	if release, _, _ := strings.Cut(version, "-"); !semver.IsValid(version) || strings.Count(release, ".") != 2 {
		what := "add the patch version"
		if !strings.HasPrefix(version, "v") {
			what = "begin with v"
		}
		// The v is left out because verbs add it to what was typed.
		return fmt.Sprintf("Kubernetes %s is not a complete version: %s, as in %s; this host has %s", strings.TrimPrefix(version, "v"), what, store.Included, strings.Join(have, ", "))
	}
	remedy := fmt.Sprintf("`slipway versions add %s` adds it", version)
	if _, err := store.Check(version); err != nil {
		remedy = fault.UserMessage(err)
	}
	return fmt.Sprintf("this host has Kubernetes %s and not %s; %s", strings.Join(have, ", "), version, remedy)
}
