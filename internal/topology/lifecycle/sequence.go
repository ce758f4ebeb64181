package lifecycle

import (
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// sequence evaluates the gates of an upgrade, up to the first that is closed. [Next] calls it. The gates and their
// order are those in the table of the package documentation.
func (d *decision) sequence() {
	d.begun = d.pending[AfterClusterUpgrade] || !d.RuntimeSDK && d.step != ""
	for _, gate := range []func() bool{
		d.plan, d.resume, d.correct, d.isControlPlaneStable, func() bool { return d.after(AfterControlPlaneUpgrade) }, d.beforeWorkersUpgrade, d.workersDue, d.workersUpgraded,
		func() bool { return d.after(AfterWorkersUpgrade) }, d.moreToDo, d.workersRolledOut, d.beforeClusterUpgrade, d.beforeControlPlaneUpgrade,
	} {
		if !gate() {
			return
		}
	}
}

// plan computes the upgrade plan.
func (d *decision) plan() bool {
	j := PlanInput{ControlPlane: d.current, Workers: Lowest(d.Workers, d.current, d.target), Target: d.target}
	if j.arrived() {
		return true
	}
	var err error
	switch {
	case d.PlanExtension != "" && !d.RuntimeSDK:
		err = invalid("ClusterClass %s uses handler %s for upgrade plans, but the feature gate RuntimeSDK is disabled; enable it, or "+
			"remove spec.upgrade.external", d.Class, d.PlanExtension)
	case d.PlanExtension != "":
		q := HookCall{Hook: GenerateUpgradePlan, Handler: d.PlanExtension, From: j.ControlPlane, FromWorkers: j.Workers, To: j.Target}
		if !d.allows("", q) {
			d.unplanned = true
			return false
		}
		d.route, err = validatePlanResponse(j, d.PlanExtension, d.Results[GenerateUpgradePlan].Plan)
	default:
		d.route, err = j.Route(d.Class, d.Versions)
	}
	if err != nil {
		d.unplanned = true
		d.result.Failed = append(d.result.Failed, err)
		d.problems = append(d.problems, "No plan for the "+d.upgradeTo(d.target)+": "+fault.UserMessage(err))
	}
	return err == nil
}

// resumes reports whether a recorded version has not been written to the control plane yet.
func (d *decision) resumes() bool {
	return d.RuntimeSDK && d.pending[AfterControlPlaneUpgrade] && d.step != "" && !isSameVersion(d.step, d.current) &&
		len(d.route.ControlPlane) > 0 && isSameVersion(d.route.ControlPlane[0], d.step)
}

// resume grants the control plane a version that was recorded but not written. If the recorded version is no longer in
// the plan, its record is removed.
func (d *decision) resume() bool {
	if d.resumes() {
		d.granted = d.route.ControlPlane[0]
		return false
	}
	if d.pending[AfterControlPlaneUpgrade] && d.step != "" && !isSameVersion(d.step, d.current) {
		d.pending.remove(AfterControlPlaneUpgrade)
	}
	return true
}

// correct grants the control plane the next version in place of one that it never reached. The upgrade has already
// started, so no hook is called again.
func (d *decision) correct() bool {
	if d.corrected && len(d.route.ControlPlane) > 0 {
		d.grant(d.route.ControlPlane[0])
		return false
	}
	return true
}

// after calls a pending hook that runs after a step.
func (d *decision) after(hook Hook) bool {
	if !d.pending[hook] {
		return true
	}
	if !d.allowsAndRecords(d.upgradeTo(d.target), HookCall{Hook: hook, To: d.current, Rest: d.route}) {
		return false
	}
	d.pending.remove(hook)
	return true
}

// areWorkersDue reports whether the next step of the workers is the version of the control plane.
func (d *decision) areWorkersDue() bool {
	return len(d.route.Workers) > 0 && isSameVersion(d.route.Workers[0], d.current)
}

// beforeWorkersUpgrade calls the hook if any worker may be upgraded now. A workers' step that was not planned when the
// control plane was upgraded starts here.
func (d *decision) beforeWorkersUpgrade() bool {
	switch {
	case !d.areWorkersDue() && d.pending[BeforeWorkersUpgrade]: // the workers that had to be upgraded no longer exist
		d.pending.remove(BeforeWorkersUpgrade, AfterWorkersUpgrade)
		return true
	case !d.areWorkersDue() || !d.RuntimeSDK:
		d.pending.remove(BeforeWorkersUpgrade)
		return true
	case !d.pending[BeforeWorkersUpgrade] && !d.pending[AfterWorkersUpgrade]:
		d.pending.add(BeforeWorkersUpgrade, AfterWorkersUpgrade)
	}
	if !d.pending[BeforeWorkersUpgrade] || !d.mayAnyWorkerUpgrade() {
		return true
	}
	from := Lowest(d.Workers, d.current, d.target)
	if !d.allowsAndRecords("upgrade of the workers to "+d.current, HookCall{Hook: BeforeWorkersUpgrade, From: from, To: d.current, Rest: d.route}) {
		return false
	}
	d.pending.remove(BeforeWorkersUpgrade)
	return true
}

// mayAnyWorkerUpgrade reports whether at least one due worker is not deferred.
func (d *decision) mayAnyWorkerUpgrade() bool {
	deferred := deferrals(d.Workers)
	for i, w := range d.Workers {
		if w.Exists && deferred[i] == "" && !isSameVersion(w.Version, d.current) {
			return true
		}
	}
	return false
}

// workersDue reports whether no worker has to get the version of the control plane now. It permits workers to get it.
func (d *decision) workersDue() bool {
	d.workersMay = true
	return !d.areWorkersDue()
}

// workersUpgraded reports whether no worker is upgrading.
func (d *decision) workersUpgraded() bool {
	return !slices.ContainsFunc(d.Workers, func(w Worker) bool { return w.Exists && w.Upgrading })
}

// moreToDo reports whether the plan has a next version of the control plane.
func (d *decision) moreToDo() bool {
	d.finished = len(d.route.ControlPlane) == 0
	return !d.finished
}

// workersRolledOut reports whether no worker is rolling out when an upgrade starts, because its new Machines would be
// replaced before they are ready. Workers whose upgrade is deferred are ignored, so that users can skip a rollout that
// never completes.
func (d *decision) workersRolledOut() bool {
	if d.begun {
		return true
	}
	deferred := deferrals(d.Workers)
	for i, w := range d.Workers {
		if w.Exists && w.RollingOut && deferred[i] == "" {
			d.rolling = append(d.rolling, w)
		}
	}
	return len(d.rolling) == 0
}

// beforeClusterUpgrade starts an upgrade. Blocking annotations set by users are checked before extensions are called.
func (d *decision) beforeClusterUpgrade() bool {
	if d.begun {
		return true
	}
	if holds := holdsOf(d.Cluster); len(holds) > 0 {
		d.result.Blocking = append(d.result.Blocking, Blocked{Hook: BeforeClusterUpgrade, Action: d.upgradeTo(d.target), Annotations: holds})
		return false
	}
	if !d.allowsAndRecords(d.upgradeTo(d.target), HookCall{Hook: BeforeClusterUpgrade, From: d.current, To: d.target, Rest: d.route}) {
		return false
	}
	d.begun = true
	if d.RuntimeSDK {
		d.pending.add(AfterClusterUpgrade)
	}
	return true
}

// beforeControlPlaneUpgrade grants the control plane its next version, unless the hook blocks.
func (d *decision) beforeControlPlaneUpgrade() bool {
	next := d.route.ControlPlane[0]
	q := HookCall{Hook: BeforeControlPlaneUpgrade, From: d.current, To: next, Rest: d.route}
	if !d.allowsAndRecords("upgrade of the control plane to "+next, q) {
		return false
	}
	d.grant(next)
	return true
}

// grant sets the new version of the control plane.
func (d *decision) grant(next string) {
	d.granted = next
	if d.RuntimeSDK {
		d.pending.add(AfterControlPlaneUpgrade)
		if len(d.route.Workers) > 0 && isSameVersion(d.route.Workers[0], next) {
			d.pending.add(BeforeWorkersUpgrade, AfterWorkersUpgrade)
		}
	}
}

func (d *decision) upgradeTo(target string) string { return "upgrade of the Cluster to " + target }

// holdsOf returns the annotations with which users block an upgrade, sorted.
func holdsOf(cluster *clusterv1.Cluster) []string {
	var out []string
	for name := range cluster.Annotations {
		if isHold(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
