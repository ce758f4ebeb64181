package machineset

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines"
)

// Checks returns all preflight checks in the order in which they run. Each is a condition of the control plane without
// which no Machine is created. The flags of the manager accept their names.
func Checks() []clusterv1.MachineSetPreflightCheck {
	var out []clusterv1.MachineSetPreflightCheck
	for _, name := range machines.WorkerChecks().Names() {
		out = append(out, clusterv1.MachineSetPreflightCheck(name))
	}
	return out
}

// needsPreflight reports whether preflight checks may be needed because Machines are missing or unhealthy.
func needsPreflight(s snapshot) bool {
	return missing(s) > 0 || len(remediation(s, nil).Candidates()) > 0
}

// preflightBlockers returns why no Machine may be created or replaced now, for [decide] and the ScalingUp condition. It
// returns none if no Machine has to be created. An annotation of Cluster API on the MachineSet, its MachineDeployment,
// or the bootstrap template skips checks.
func preflightBlockers(s snapshot) []machines.PreflightBlocker {
	if s.Cluster == nil || !needsPreflight(s) {
		return nil
	}
	skip := []string{}
	if s.Bootstrap.Exists() {
		skip = append(skip, s.Bootstrap.Object.GetAnnotations()[clusterv1.MachineSetSkipPreflightChecksAnnotation])
	}
	return s.preflight("the MachineSet", s.Set, skip...)
}

// preflight runs the checks for Machines of a MachineSet: the snapshot's, or another one of the same
// MachineDeployment.
func (s snapshot) preflight(owner string, set *clusterv1.MachineSet, skip ...string) []machines.PreflightBlocker {
	if s.Cluster == nil {
		return nil
	}
	workers := machines.PreflightWorkers{Cluster: s.Cluster, ControlPlane: s.ControlPlane, Owner: owner, Machine: set.Spec.Template.Spec}
	skip = append(skip, set.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation])
	if s.Deployment != nil {
		skip = append(skip, s.Deployment.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation])
	}
	return workers.Blockers(machines.WorkerChecks().Filter(func(name string) bool {
		check := clusterv1.MachineSetPreflightCheck(name)
		if s.AwaitsWorkloadCluster && check == clusterv1.MachineSetPreflightCheckControlPlaneIsStable {
			return false // the MachineSet waits for that in any case and reports it
		}
		return s.Settings.runs(check) && !machines.IsSkipped(name, skip...)
	}))
}
