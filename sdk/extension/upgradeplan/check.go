package upgradeplan

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// maxLag is the maximum version skew between workers and the control plane in minor versions.
const maxLag = 3

// Check validates a plan by the rules of the hook:
//
//   - The control plane versions increase from the current one, or are another build of the same version, skip no minor
//     version, and end with the requested version. The list is empty if the control plane already has the requested version.
//   - The worker versions may be omitted. They increase and end in the same way, are current or planned versions of the
//     control plane in their order, and are never more than three minor versions behind it. The list is empty without
//     workers.
func Check(in *hooksv1.GenerateUpgradePlanRequest, out *hooksv1.GenerateUpgradePlanResponse) error {
	target, err := parse("the requested version", in.ToKubernetesVersion)
	if err != nil {
		return err
	}
	plane, err := read("controlPlaneUpgrades", in.FromControlPlaneKubernetesVersion, out.ControlPlaneUpgrades)
	if err != nil {
		return err
	}
	problems := []error{plane.check(target, true)}
	if len(out.WorkersUpgrades) > 0 {
		problems = append(problems, checkWorkers(in, out, target, plane))
	}
	return errors.Join(problems...)
}

// list is a list of versions in a plan, preceded by the current version.
type list struct {
	name  string
	texts []string
	all   []*version.Version
}

func read(name, from string, steps []hooksv1.UpgradeStep) (list, error) {
	l := list{name: name}
	for i, text := range slices.Concat([]string{from}, versionsOf(steps)) {
		v, err := parse("a version of "+name, text)
		if i == 0 {
			v, err = parse("the version that "+name+" start from", text)
		}
		if err != nil {
			return l, err
		}
		l.texts, l.all = append(l.texts, text), append(l.all, v)
	}
	return l, nil
}

func versionsOf(steps []hooksv1.UpgradeStep) []string {
	out := make([]string, 0, len(steps))
	for _, s := range steps {
		out = append(out, s.Version)
	}
	return out
}

// check validates a list, which may be empty only if no upgrade is necessary.
func (l list) check(target *version.Version, everyMinor bool) error {
	if same(l.all[0], target) {
		if len(l.all) > 1 {
			return fmt.Errorf("%s has versions, and %s is the requested one", l.name, l.texts[0])
		}
		return nil
	}
	for i := 1; i < len(l.all); i++ {
		before, v := l.all[i-1], l.all[i]
		switch {
		case v.LessThan(before), same(v, before):
			return fmt.Errorf("%s has %s after %s, which is not older", l.name, l.texts[i], l.texts[i-1])
		case everyMinor && (v.Major() != before.Major() || v.Minor() > before.Minor()+1):
			return fmt.Errorf("%s leaves out a minor version between %s and %s", l.name, l.texts[i-1], l.texts[i])
		}
	}
	if last := len(l.all) - 1; !same(l.all[last], target) {
		return fmt.Errorf("%s ends with %s, not with the requested version", l.name, l.texts[last])
	}
	return nil
}

// checkWorkers validates the steps of the workers, given the steps of the control plane.
func checkWorkers(in *hooksv1.GenerateUpgradePlanRequest, out *hooksv1.GenerateUpgradePlanResponse, target *version.Version, plane list) error {
	const name = "workersUpgrades"
	if in.FromWorkersKubernetesVersion == "" {
		return fmt.Errorf("%s has versions, and there are no workers", name)
	}
	workers, err := read(name, in.FromWorkersKubernetesVersion, out.WorkersUpgrades)
	if err != nil {
		return err
	}
	if err := workers.check(target, false); err != nil {
		return err
	}
	at, left := 0, 1
	for i, server := range plane.all {
		if i > 0 && workers.all[at].Minor()+maxLag < server.Minor() {
			return fmt.Errorf("%s leaves the workers at %s while the control plane gets %s, more than %d minor versions later",
				name, workers.texts[at], plane.texts[i], maxLag)
		}
		if left < len(workers.all) && same(workers.all[left], server) {
			at, left = left, left+1
		}
	}
	if left < len(workers.all) {
		return fmt.Errorf("%s has %s where the control plane does not have or pass it", name, workers.texts[left])
	}
	return nil
}
