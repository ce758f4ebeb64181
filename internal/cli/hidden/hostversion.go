package hidden

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/nodeimage/versions"
	"github.com/slipwayhq/slipway/internal/version"
)

// NewerVersions lists the versions on this host that are newer than the current one of a control plane, for an error of
// "upgrade cluster". It returns an empty string if the data directory is unknown, or if control planes of the class do
// not run on this host. The checks of versions are in this package because, like the hidden commands, they read the
// host and not the management cluster.
func NewerVersions(dir datadir.Dir, of template.Class, current string) string {
	if dir == "" || !of.RunsOnHost() {
		return ""
	}
	return newerVersionsText(versions.LocalStore(dir.Kubernetes()).Versions(), current)
}

func newerVersionsText(have []string, than string) string {
	newer := slices.DeleteFunc(slices.Clone(have), func(v string) bool { return !version.IsOlder(than, v) })
	if len(newer) == 0 {
		return "; this host has none that is newer: `slipway versions add` adds one"
	}
	return "; this host has " + strings.Join(newer, ", ")
}

// UnsupportedVersion returns an error message with a remedy if control planes of a class cannot run the version on this
// host, and an empty string otherwise. "create cluster" and "upgrade cluster" call it before they write. dir is empty
// if the management cluster does not run on this host.
func UnsupportedVersion(dir datadir.Dir, of template.Class, wanted string) string {
	if dir == "" || !of.RunsOnHost() {
		return ""
	}
	store := versions.LocalStore(dir.Kubernetes())
	have := store.Versions()
	if slices.Contains(have, wanted) {
		return ""
	}
	if !version.Valid(wanted) {
		what := "add the patch version"
		if !strings.HasPrefix(wanted, "v") {
			what = "begin with v"
		}
		// Commands add the v to the user's input, so the message omits it.
		return fmt.Sprintf("Kubernetes %s is not a complete version: %s, as in %s; this host has %s", strings.TrimPrefix(wanted, "v"), what, store.Included, strings.Join(have, ", "))
	}
	remedy := fmt.Sprintf("`slipway versions add %s` adds it", wanted)
	if _, err := store.Check(wanted); err != nil {
		remedy = fault.UserMessage(err)
	}
	return fmt.Sprintf("this host has Kubernetes %s and not %s; %s", strings.Join(have, ", "), wanted, remedy)
}
