package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// isHold reports whether an annotation of a Cluster, which a user or a tool sets, blocks the next upgrade. [Next]
// checks each annotation of the Cluster before it calls BeforeClusterUpgrade.
func isHold(annotation string) bool {
	rest, ok := strings.CutPrefix(annotation, clusterv1.BeforeClusterUpgradeHookAnnotationPrefix)
	return ok && (rest == "" || strings.HasPrefix(rest, "/"))
}

// describe returns reason and message of the Cluster's condition TopologyReconciled, for [Next]. Cluster API defines
// the reasons; the topology controller sets the condition.
func (d *decision) describe() (reason, message string) {
	var lines []string
	if len(d.result.Blocking) > 0 {
		lines = append(lines, blockingLine(d.result.Blocking))
	}
	if d.result.Suspended && len(d.result.Failed) == 0 {
		return clusterv1.ClusterTopologyReconciledClusterCreatingReason, strings.Join(lines, "\n")
	}
	moving := d.moving()
	lines = append(lines, moving...)
	switch {
	case len(d.result.Failed) > 0:
		return clusterv1.ClusterTopologyReconciledFailedReason, bullets(append(d.problems, lines...))
	case len(lines) > 0 || d.pending[AfterClusterUpgrade] && d.finished:
		return clusterv1.ClusterTopologyReconciledClusterUpgradingReason, bullets(append(lines, d.deferredLines()...))
	}
	if lines = d.deferredLines(); len(lines) > 0 {
		return d.deferredReason(), bullets(lines)
	}
	return clusterv1.ClusterTopologyReconcileSucceededReason, ""
}

// bullets formats lines as a list, or a single line as it is.
func bullets(lines []string) string {
	if len(lines) == 1 {
		return lines[0]
	}
	return "* " + strings.Join(lines, "\n* ")
}

// blockingLine describes the hooks that block, and the handlers or annotations that cause it.
func blockingLine(blocked []Blocked) string {
	hooks := make([]string, 0, len(blocked))
	for _, b := range blocked {
		for _, by := range b.By {
			hooks = append(hooks, fmt.Sprintf("%s: %s", b.Hook, by))
		}
		if len(b.Annotations) > 0 {
			hooks = append(hooks, fmt.Sprintf("annotations of the Cluster: %s; remove them to upgrade", condition.Names(b.Annotations)))
		}
	}
	return fmt.Sprintf("Following hooks are blocking %s: %s", blocked[0].Action, strings.Join(hooks, "; "))
}

// moving returns messages about upgrades in progress and the next steps.
func (d *decision) moving() []string {
	var lines []string
	if cp := d.ControlPlane; cp != nil {
		name := cp.Kind + " " + cp.Name
		next := d.result.Plan.ControlPlane
		switch {
		case d.granted != "":
			lines = append(lines, name+" is upgrading to "+d.granted+following(next))
		case d.corrected:
			lines = append(lines, name+" is changing to "+d.current+" from "+cp.Version+", which it never completely ran")
		case !d.isProvisioning() && !d.isControlPlaneStable():
			lines = append(lines, name+" is upgrading to "+d.current+following(next))
		case len(next) > 0:
			lines = append(lines, name+" waits for its upgrade from "+d.current+" to "+next[0]+following(next[1:]))
		}
	}
	for _, w := range d.rolling {
		lines = append(lines, fmt.Sprintf("%s %s must complete its rollout before the upgrade starts; to skip it in the upgrade, set the annotation %s on it in spec.topology",
			w.Kind, w.Name, clusterv1.ClusterTopologyDeferUpgradeAnnotation))
	}
	for _, kind := range []string{"MachineDeployment", "MachinePool"} {
		lines = append(lines, d.workerLines(kind)...)
	}
	if slices.Contains(d.states, upgrading) && condition.Set(d.Cluster.Status.Conditions).IsFalse(clusterv1.ClusterRemoteConnectionProbeCondition) {
		lines = append(lines, "The API server of the cluster does not respond, so that new Machines cannot join; see condition "+clusterv1.ClusterRemoteConnectionProbeCondition)
	}
	return lines
}

func following(next []string) string {
	if len(next) == 0 {
		return ""
	}
	return ", then " + strings.Join(next, ", ")
}

// workerLines returns messages about workers of a kind that are upgrading, wait for their upgrade, or are not created
// yet.
func (d *decision) workerLines(kind string) []string {
	var lines []string
	line := func(names []string, one, many string) {
		switch len(names) {
		case 0:
		case 1:
			lines = append(lines, fmt.Sprintf("%s %s %s", kind, names[0], one))
		default:
			lines = append(lines, fmt.Sprintf("%ss %s %s", kind, condition.Names(names), many))
		}
	}
	line(d.inState(kind, upgrading), "is upgrading to "+d.current, "are upgrading to "+d.current)
	if next := d.nextOfWorkers(); next != "" {
		line(d.inState(kind, queued), "waits for its upgrade to "+next, "wait for their upgrades to "+next)
	}
	line(d.inState(kind, withheld), "is created when the control plane is stable", "are created when the control plane is stable")
	return lines
}

// nextOfWorkers returns the next version of the workers.
func (d *decision) nextOfWorkers() string {
	if len(d.route.Workers) == 0 {
		return d.target
	}
	return d.route.Workers[0]
}

// inState returns the object names of the workers of a kind that are in a state.
func (d *decision) inState(kind string, state workerState) []string {
	var out []string
	for i, w := range d.Workers {
		if i < len(d.states) && w.Kind == kind && d.states[i] == state {
			if w.Name == "" {
				w.Name = w.Topology
			}
			out = append(out, w.Name)
		}
	}
	return out
}

// deferredLines returns messages about upgrades that users deferred.
func (d *decision) deferredLines() []string {
	var lines []string
	for _, kind := range []string{"MachineDeployment", "MachinePool"} {
		if names := d.inState(kind, deferred); len(names) > 0 {
			if len(names) > 1 {
				kind += "s"
			}
			lines = append(lines, fmt.Sprintf("%s %s: upgrade to %s deferred until the annotation %s or %s is removed in spec.topology",
				kind, condition.Names(names), d.nextOfWorkers(),
				clusterv1.ClusterTopologyDeferUpgradeAnnotation, clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation))
		}
	}
	return lines
}

func (d *decision) deferredReason() string {
	if len(d.inState("MachineDeployment", deferred)) > 0 {
		return clusterv1.ClusterTopologyReconciledMachineDeploymentsUpgradeDeferredReason
	}
	return clusterv1.ClusterTopologyReconciledMachinePoolsUpgradeDeferredReason
}
