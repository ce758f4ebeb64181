package lifecycle

import (
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// UpgradePlan is an upgrade plan: the remaining versions of the control plane and of the workers, in order, without
// their current version. A list is empty if the part has reached the target or does not exist. [Next] computes it for
// each decision, and `slipway upgrade cluster` before it changes the Cluster.
type UpgradePlan struct {
	ControlPlane, Workers []string
}

// PlanInput is the input of an upgrade plan. [Next] fills it in from a topology, and `slipway upgrade cluster` from the
// Cluster, so that both compute the same plan.
type PlanInput struct {
	// ControlPlane is the version of the control plane, Workers the oldest version of the workers; empty if there are
	// none.
	ControlPlane, Workers string
	// Target is the version of the topology.
	Target string
}

// arrived reports whether the upgrade is complete.
func (j PlanInput) arrived() bool {
	return isSameVersion(j.ControlPlane, j.Target) && (j.Workers == "" || isSameVersion(j.Workers, j.Target))
}

// isSameVersion reports whether two strings are the same version.
func isSameVersion(a, b string) bool { return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v") }

// Route returns the plan for a class without a plan extension: from its list of versions, or if it has none, at most
// one minor version. The error states the necessary correction if there is no valid plan.
func (j PlanInput) Route(class string, versions []string) (UpgradePlan, error) {
	switch {
	case j.arrived():
		return UpgradePlan{}, nil
	case len(versions) > 0:
		return listed(j, class, versions)
	}
	return anyMinor(j, class)
}

// anyMinor returns the plan without a list of versions: the target, at most one minor version away.
func anyMinor(j PlanInput, class string) (UpgradePlan, error) {
	at, to, err := j.ends()
	if err != nil {
		return UpgradePlan{}, err
	}
	if to.Minor > at.Minor+1 {
		return UpgradePlan{}, invalid("an upgrade from %s to %s passes v%d.%d; upgrade one minor version at a time, or list in "+
			"spec.kubernetesVersions of ClusterClass %s the versions that upgrades may pass", at, to, at.Major, at.Minor+1, class)
	}
	return j.with([]string{j.Target})
}

// listed returns the plan for a class that lists versions: the newest of each minor version in between, then the
// target.
func listed(j PlanInput, class string, versions []string) (UpgradePlan, error) {
	at, to, err := j.ends()
	if err != nil {
		return UpgradePlan{}, err
	}
	if !slices.ContainsFunc(versions, func(v string) bool { return isSameVersion(v, j.Target) }) {
		return UpgradePlan{}, invalid("spec.kubernetesVersions of ClusterClass %s does not list %s; add it, or set "+
			"spec.topology.version to a listed version", class, j.Target)
	}
	var steps []string
	for minor := at.Minor + 1; minor < to.Minor; minor++ {
		newest := newestOf(versions, at.Major, minor)
		if newest == "" {
			return UpgradePlan{}, invalid("spec.kubernetesVersions of ClusterClass %s lists no version of v%d.%d, which an upgrade from %s to "+
				"%s has to pass; add one", class, at.Major, minor, at, to)
		}
		steps = append(steps, newest)
	}
	return j.with(append(steps, j.Target))
}

// newestOf returns the newest patch version of a minor version, or an empty string.
func newestOf(versions []string, major, minor uint64) string {
	best, newest := "", version.Version{}
	for _, text := range versions {
		v, err := version.Parse(text)
		if err != nil || v.Major != major || v.Minor != minor {
			continue
		}
		if best == "" || v.Compare(newest) > 0 {
			best, newest = text, v
		}
	}
	return best
}

// with returns the plan with these steps for the control plane (none if it has reached the target), and the minimum
// number of steps for the workers.
func (j PlanInput) with(steps []string) (UpgradePlan, error) {
	if isSameVersion(j.ControlPlane, j.Target) {
		steps = nil
	}
	out := UpgradePlan{ControlPlane: steps}
	var err error
	out.Workers, err = j.fewest(steps)
	return out, err
}

// ends returns the versions of the control plane and of the target, which must not be older and must have the same
// major version.
func (j PlanInput) ends() (at, to version.Version, err error) {
	if at, err = version.Parse(j.ControlPlane); err != nil {
		return at, to, invalid("version %q of the control plane is not a semantic version; correct it", j.ControlPlane)
	}
	if to, err = version.Parse(j.Target); err != nil {
		return at, to, invalid("spec.topology.version %q is not a semantic version; correct it", j.Target)
	}
	switch {
	case to.Version.LT(at.Version):
		return at, to, invalid("spec.topology.version %s is older than %s, which the control plane has; set it to this version or a newer one", to, at)
	case to.Major != at.Major:
		return at, to, invalid("an upgrade from %s to %s passes a major version, which is not supported; set "+
			"spec.topology.version to a version of v%d", at, to, at.Major)
	}
	return at, to, nil
}

// fewest returns the minimum steps of the workers: one before each step of the control plane that would exceed the
// version skew that Kubernetes allows, and the target.
func (j PlanInput) fewest(steps []string) ([]string, error) {
	if j.Workers == "" || isSameVersion(j.Workers, j.Target) {
		return nil, nil
	}
	all, err := parseAll(append([]string{j.Workers, j.ControlPlane}, steps...))
	if err != nil {
		return nil, err
	}
	worker, before := all[0], all[1]
	var out []string
	for _, next := range all[2:] {
		if lagsBehind(worker, next) && !isSameVersion(before.String(), worker.String()) {
			out, worker = append(out, before.String()), before
		}
		before = next
	}
	return append(out, j.Target), nil
}

// lagsBehind reports whether a kubelet is too old for an API server.
func lagsBehind(kubelet, server version.Version) bool {
	return version.Span{Lowest: server, Highest: server}.IsTooNewFor(kubelet)
}

func parseAll(texts []string) ([]version.Version, error) {
	out := make([]version.Version, 0, len(texts))
	for _, text := range texts {
		v, err := version.Parse(text)
		if err != nil {
			return nil, invalid("version %q is not a semantic version; correct it", text)
		}
		out = append(out, v)
	}
	return out, nil
}

func invalid(message string, args ...any) error {
	return fault.New(fault.Invalid, "UpgradePlanInvalid", message, args...)
}
