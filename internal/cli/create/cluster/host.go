package cluster

import (
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/clusterctl/class"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/releases"
)

// checkHost refuses a version that the host of a management cluster cannot run, before anything is written. Without a data directory it
// is not known what the host has, and the control plane says it.
func checkHost(dir datadir.Dir, of class.Class, version string) error {
	if dir == "" || !of.RunsOnHost() {
		return nil
	}
	have := releases.Local(dir.Kubernetes()).Versions()
	if slices.Contains(have, version) {
		return nil
	}
	return usage("--kubernetes-version: this host has Kubernetes %s and not %s; `slipway versions add %s` adds it", strings.Join(have, ", "), version, version)
}
