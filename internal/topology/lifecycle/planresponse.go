package lifecycle

import (
	"slices"

	"github.com/slipwayhq/slipway/internal/version"
)

// validatePlanResponse validates the upgrade plan that an extension returned for the hook GenerateUpgradePlan, before
// [Next] uses it. If the plan has no steps for the workers, it computes the minimal number of steps.
func validatePlanResponse(j PlanInput, handler string, r UpgradePlan) (UpgradePlan, error) {
	if _, _, err := j.ends(); err != nil {
		return UpgradePlan{}, err
	}
	refuse := func(message string, args ...any) error {
		return invalid("the upgrade plan of handler %s cannot be used: "+message, append([]any{handler}, args...)...)
	}
	if problem := j.checkControlPlane(r.ControlPlane); problem != "" {
		return UpgradePlan{}, refuse("controlPlaneUpgrades %s", problem)
	}
	if len(r.Workers) == 0 {
		return j.with(r.ControlPlane)
	}
	if problem := j.checkWorkers(r); problem != "" {
		return UpgradePlan{}, refuse("workersUpgrades %s", problem)
	}
	return r, nil
}

// checkControlPlane returns a description of the problem with the steps of the control plane, or an empty string.
func (j PlanInput) checkControlPlane(steps []string) string {
	if isSameVersion(j.ControlPlane, j.Target) {
		if len(steps) > 0 {
			return "has versions, and the control plane has the target " + j.Target
		}
		return ""
	}
	if problem := j.checkRising(j.ControlPlane, steps); problem != "" {
		return problem
	}
	before, _ := version.Parse(j.ControlPlane)
	for _, text := range steps {
		v, _ := version.Parse(text)
		if v.Major != before.Major || v.Minor > before.Minor+1 {
			return "leaves out a minor version between " + before.String() + " and " + text
		}
		before = v
	}
	return ""
}

// checkRising returns a description of the problem with a list of versions, which must ascend from a version to the
// target, or an empty string.
func (j PlanInput) checkRising(from string, steps []string) string {
	before, err := version.Parse(from)
	if err != nil {
		return "starts from " + from + ", which is not a semantic version"
	}
	for _, text := range steps {
		if !version.Valid(text) {
			return quoted(text) + " is not a Kubernetes version"
		}
		v, _ := version.Parse(text)
		if order := v.Version.Compare(before.Version); order < 0 || order == 0 && isSameVersion(text, before.String()) {
			return "has " + text + " after " + before.String() + ", which is not older"
		}
		before = v
	}
	if !isSameVersion(before.String(), j.Target) {
		return "ends with " + before.String() + ", not with the target " + j.Target
	}
	return ""
}

// quoted formats a version from an extension, shortened if necessary.
func quoted(text string) string {
	const most = 64
	if len(text) > most {
		text = text[:most] + "…"
	}
	return "version \"" + text + "\""
}

// checkWorkers returns a description of the problem with the steps of the workers, given the steps of the control
// plane, or an empty string.
func (j PlanInput) checkWorkers(r UpgradePlan) string {
	if j.Workers == "" || isSameVersion(j.Workers, j.Target) {
		return "has versions, and no worker has to be upgraded"
	}
	if problem := j.checkRising(j.Workers, r.Workers); problem != "" {
		return problem
	}
	worker, _ := version.Parse(j.Workers)
	left := r.Workers
	for i, text := range slices.Concat([]string{j.ControlPlane}, r.ControlPlane) {
		server, _ := version.Parse(text)
		if i > 0 && lagsBehind(worker, server) {
			return "leaves workers at " + worker.String() + " while the control plane gets " + text + ", more than three minor versions later"
		}
		if len(left) > 0 && isSameVersion(left[0], text) {
			worker, left = server, left[1:]
		}
	}
	if len(left) > 0 {
		return "has " + left[0] + " where the control plane does not have or pass it"
	}
	return ""
}
