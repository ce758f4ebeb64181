package machineset

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines/preflight"
)

// Checks are all preflight checks, in the order in which they run.
func Checks() []clusterv1.MachineSetPreflightCheck {
	var out []clusterv1.MachineSetPreflightCheck
	for _, name := range preflight.WorkerChecks().Names() {
		out = append(out, clusterv1.MachineSetPreflightCheck(name))
	}
	return out
}

// needsPreflight reports whether preflight checks may be needed: Machines are missing, or unhealthy.
func needsPreflight(s Snapshot) bool {
	return missing(s) > 0 || len(remediation(s, nil).Candidates()) > 0
}

// preflightBlockers say what speaks against creating or replacing a Machine now; nothing where none shall be created. Checks are
// skipped by an annotation on the set, its MachineDeployment, or the bootstrap template.
func preflightBlockers(s Snapshot) []preflight.Blocker {
	if s.Cluster == nil || !needsPreflight(s) {
		return nil
	}
	skip := []string{}
	if s.Bootstrap.Exists() {
		skip = append(skip, s.Bootstrap.Object.GetAnnotations()[clusterv1.MachineSetSkipPreflightChecksAnnotation])
	}
	return s.preflight("the MachineSet", s.Set, skip...)
}

// preflight says what speaks against Machines of a set, the snapshot's or one of the same MachineDeployment.
func (s Snapshot) preflight(owner string, set *clusterv1.MachineSet, skip ...string) []preflight.Blocker {
	if s.Cluster == nil {
		return nil
	}
	workers := preflight.Workers{Cluster: s.Cluster, ControlPlane: s.ControlPlane, Owner: owner, Machine: set.Spec.Template.Spec}
	skip = append(skip, set.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation])
	if s.Deployment != nil {
		skip = append(skip, s.Deployment.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation])
	}
	return workers.Blockers(preflight.WorkerChecks().Filter(func(name string) bool {
		check := clusterv1.MachineSetPreflightCheck(name)
		if s.Begins && check == clusterv1.MachineSetPreflightCheckControlPlaneIsStable {
			return false // the set waits for that anyway, and says so
		}
		return s.Settings.runs(check) && !preflight.IsSkipped(name, skip...)
	}))
}
