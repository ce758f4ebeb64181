package upgradeplan

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Planner handles the hook GenerateUpgradePlan. Its method Generate is a handler for extension.OnErr.
type Planner struct {
	// Versions returns the Kubernetes versions available to a cluster, in any order, for example those with an image.
	Versions func(ctx context.Context, cluster *clusterv1.Cluster) ([]string, error)
	// EveryWorker upgrades the workers with every step of the control plane. Otherwise the plan omits the steps of the
	// workers, and the caller uses as few as the version skew allows.
	EveryWorker bool
}

// Generate responds with a plan that includes the newest version of each minor version.
func (p Planner) Generate(ctx context.Context, in *hooksv1.GenerateUpgradePlanRequest, out *hooksv1.GenerateUpgradePlanResponse) error {
	versions, err := p.Versions(ctx, &in.Cluster)
	if err != nil {
		return fmt.Errorf("finding the versions of Kubernetes: %w", err)
	}
	if out.ControlPlaneUpgrades, err = Plan(in, versions); err != nil {
		return err
	}
	if p.EveryWorker {
		if out.WorkersUpgrades, err = everyWorker(in, out.ControlPlaneUpgrades); err != nil {
			return err
		}
	}
	return Check(in, out)
}

// Plan returns the steps of the control plane to the requested version: the newest version of each intermediate minor
// version, followed by the requested one. It is empty if the control plane already has the requested version. The error
// names a missing version.
func Plan(in *hooksv1.GenerateUpgradePlanRequest, versions []string) ([]hooksv1.UpgradeStep, error) {
	from, err := parse("the version of the control plane", in.FromControlPlaneKubernetesVersion)
	if err != nil {
		return nil, err
	}
	to, err := parse("the requested version", in.ToKubernetesVersion)
	switch {
	case err != nil:
		return nil, err
	case same(from, to):
		return nil, nil
	case to.Major() != from.Major() || to.LessThan(from):
		return nil, fmt.Errorf("there is no way from %s to %s", in.FromControlPlaneKubernetesVersion, in.ToKubernetesVersion)
	}
	if !slices.ContainsFunc(versions, func(text string) bool { return isVersion(text, to) }) {
		return nil, fmt.Errorf("%s is not one of the versions that clusters may get", in.ToKubernetesVersion)
	}
	var out []hooksv1.UpgradeStep
	for minor := from.Minor() + 1; minor < to.Minor(); minor++ {
		newest := newestOf(versions, from.Major(), minor)
		if newest == "" {
			return nil, fmt.Errorf("there is no version of v%d.%d, which an upgrade from %s to %s has to pass", from.Major(), minor,
				in.FromControlPlaneKubernetesVersion, in.ToKubernetesVersion)
		}
		out = append(out, hooksv1.UpgradeStep{Version: newest})
	}
	return append(out, hooksv1.UpgradeStep{Version: in.ToKubernetesVersion}), nil
}

// everyWorker returns the current and planned versions of the control plane that are newer than the workers.
func everyWorker(in *hooksv1.GenerateUpgradePlanRequest, controlPlane []hooksv1.UpgradeStep) ([]hooksv1.UpgradeStep, error) {
	if in.FromWorkersKubernetesVersion == "" {
		return nil, nil
	}
	at, err := parse("the version of the workers", in.FromWorkersKubernetesVersion)
	if err != nil {
		return nil, err
	}
	var out []hooksv1.UpgradeStep
	for _, step := range slices.Concat([]hooksv1.UpgradeStep{{Version: in.FromControlPlaneKubernetesVersion}}, controlPlane) {
		v, err := parse("a version of the control plane", step.Version)
		if err != nil {
			return nil, err
		}
		if at.LessThan(v) {
			out = append(out, step)
		}
	}
	return out, nil
}

// newestOf returns the newest version of a minor version, or "". Invalid versions are ignored.
func newestOf(versions []string, major, minor uint) string {
	best, newest := "", (*version.Version)(nil)
	for _, text := range versions {
		v, err := version.ParseSemantic(text)
		if err != nil || v.Major() != major || v.Minor() != minor {
			continue
		}
		if newest == nil || newest.LessThan(v) {
			best, newest = text, v
		}
	}
	return best
}

func parse(what, text string) (*version.Version, error) {
	v, err := version.ParseSemantic(text)
	if err != nil {
		return nil, fmt.Errorf("%s, %q, is no version such as v1.36.3", what, text)
	}
	return v, nil
}

func isVersion(text string, v *version.Version) bool {
	other, err := version.ParseSemantic(text)
	return err == nil && same(other, v)
}

// same reports whether two versions are equal, including their build metadata, which has no order.
func same(a, b *version.Version) bool { return a.String() == b.String() }
